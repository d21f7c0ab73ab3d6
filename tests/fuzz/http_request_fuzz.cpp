// Any bytes as the input of one connection: the parsed requests do not depend on how the bytes were cut into pieces,
// keep their limits, and pass through the guard.
#include "http/guard.hpp"
#include "net/request_reader.hpp"
#include "stint/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace stint;

namespace {

using State = net::RequestReader::State;

constexpr net::ReaderLimits kLimits{
    .header_bytes_max = 1024, .target_bytes_max = 256, .headers_max = 8, .body_bytes_max = 512};

bool is_one_line(std::string_view text) { return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos; }

void look_at(const net::Request& request, const http::GuardRules& rules, std::string& log) {
  STINT_ASSERT(!request.method.empty() && is_one_line(request.method) && is_one_line(request.target));
  STINT_ASSERT(request.target.size() <= kLimits.target_bytes_max && request.headers.size() <= kLimits.headers_max);
  STINT_ASSERT(request.body.size() <= kLimits.body_bytes_max);
  for (const auto& [name, value] : request.headers) {
    STINT_ASSERT(!name.empty() && is_one_line(name) && is_one_line(value));
    log.append(name).append("=").append(value).append("\n");
  }
  for (const std::string_view segment : request.segments()) {
    STINT_ASSERT(segment != "." && segment != ".." && segment.find('\0') == segment.npos);
    log.append("/").append(segment);
  }
  for (const auto& [name, value] : request.parts.query) log.append("&").append(name).append("=").append(value);
  const auto refusal = http::check(request, rules);
  log.append(request.method).append(request.body).append(std::to_string(refusal ? refusal->status : 0));
}

/// Everything that was parsed, as text.
std::string hear(std::string_view bytes, std::size_t piece) {
  std::string log;
  net::RequestReader reader(kLimits);
  http::GuardRules rules;
  rules.token = "token";
  std::string pending;
  while (true) {
    const std::size_t used = reader.feed(pending);
    STINT_ASSERT(used <= pending.size());
    pending.erase(0, used);
    if (reader.state() == State::refused) {
      STINT_ASSERT(reader.refusal().status >= 400 && !reader.refusal().detail.empty());
      return log + "refused " + std::to_string(reader.refusal().status);
    }
    if (reader.state() == State::done) {
      look_at(reader.request(), rules, log);
      reader.next();
      continue;
    }
    if (used > 0 && !pending.empty()) continue;
    if (bytes.empty()) return log;
    pending += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = hear(bytes, std::string_view::npos);
  STINT_ASSERT(hear(bytes, 1) == whole);
  STINT_ASSERT(hear(bytes, 13) == whole);
  return 0;
}
