#include "domain/fleet_event.hpp"

namespace stint::domain {
namespace {

std::string quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      out += '\\';
      out += each;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xFU];
    } else {
      out += each;
    }
  }
  return out + "\"";
}

template <class Number>
std::string or_null(std::optional<Number> number) {
  return number ? std::to_string(*number) : "null";
}

}  // namespace

std::string limit_data(std::string_view limit, std::optional<std::uint32_t> capacity) {
  return "{\"limit\":" + quoted(limit) + ",\"capacity\":" + or_null(capacity) + "}";
}
std::string pause_data(std::string_view limit, std::optional<std::int64_t> for_ms) {
  return "{\"limit\":" + quoted(limit) + ",\"for_ms\":" + or_null(for_ms) + "}";
}
std::string resume_data(std::string_view limit, std::uint64_t woken) {
  return "{\"limit\":" + quoted(limit) + ",\"woken\":" + std::to_string(woken) + "}";
}
std::string scale_data(std::uint64_t workers) { return "{\"workers\":" + std::to_string(workers) + "}"; }
std::string drain_data(std::string_view phase) { return "{\"phase\":" + quoted(phase) + "}"; }
std::string node_data(std::string_view label, std::uint64_t runs_lost) {
  return "{\"label\":" + quoted(label) + ",\"lost\":" + std::to_string(runs_lost) + "}";
}
std::string reload_data(std::uint64_t agents) { return "{\"agents\":" + std::to_string(agents) + "}"; }

}  // namespace stint::domain
