// Any bytes as a body of server-sent events: the events do not depend on how the bytes were cut, and keep their bound.
#include "model/sse_parser.hpp"
#include "stint/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace stint;

namespace {

constexpr std::size_t kMost = 256;

/// Everything that was parsed, as text.
std::string parse(std::string_view bytes, std::size_t piece) {
  std::string log;
  model::SseParser parser(kMost);
  const model::SseParser::Sink keep = [&log](const model::SseEvent& event) {
    STINT_ASSERT(!event.data.empty() && event.data.size() <= kMost && event.name.size() <= kMost);
    STINT_ASSERT(event.name.find_first_of("\r\n") == std::string_view::npos);
    log.append(event.name).append("=").append(event.data).append("\n");
  };
  bool refused = false;
  while (!bytes.empty()) {
    const bool fed = parser.feed(bytes.substr(0, piece), keep).has_value();
    STINT_ASSERT(!fed || !refused);  // an overflow is final
    refused = !fed;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  refused = !parser.finish(keep) || refused;
  return log + (refused ? "refused" : "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = parse(bytes, std::string_view::npos);
  STINT_ASSERT(parse(bytes, 1) == whole);
  STINT_ASSERT(parse(bytes, 7) == whole);
  return 0;
}
