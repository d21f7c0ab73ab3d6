#include "domain/trace.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace stint::domain {
namespace {

constexpr std::size_t kTrace = 32, kSpan = 16, kFlags = 2;

void append_digits(std::string& out, std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, 16> text;
  for (std::size_t i = text.size(); i-- > 0; number >>= 4U) text[i] = kDigits[number & 15U];
  out.append(text.data(), text.size());
}

bool is_id(std::string_view text) {
  const bool hex = std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::string new_trace_id(const System& system) {
  std::string id;
  id.reserve(kTrace);
  append_digits(id, system.random());
  append_digits(id, system.random() | 1U);
  return id;
}

std::optional<std::string> trace_of(std::string_view traceparent) {
  constexpr std::size_t kAt = 3, kSpanAt = kAt + kTrace + 1, kFlagsAt = kSpanAt + kSpan + 1;
  if (traceparent.size() < kFlagsAt + kFlags) return std::nullopt;
  // Later versions may append fields, and are parsed like this one.
  if (traceparent.substr(0, 2) == "ff" || (traceparent.starts_with("00") && traceparent.size() != kFlagsAt + kFlags)) {
    return std::nullopt;
  }
  const bool dashes = traceparent[2] == '-' && traceparent[kSpanAt - 1] == '-' && traceparent[kFlagsAt - 1] == '-';
  const std::string_view trace = traceparent.substr(kAt, kTrace);
  if (!dashes || !is_id(trace) || !is_id(traceparent.substr(kSpanAt, kSpan))) return std::nullopt;
  return std::string(trace);
}

std::string traceparent(const std::string& trace, std::string_view mark) {
  std::uint64_t span = 14695981039346656037ULL;  // FNV-1a: the same attempt has the same span
  for (const char each : mark) span = (span ^ static_cast<unsigned char>(each)) * 1099511628211ULL;
  std::string text = "00-" + trace + "-";
  append_digits(text, span | 1U);
  return text += "-01";
}

}  // namespace stint::domain
