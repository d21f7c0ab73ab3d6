#include "model/rate_headers.hpp"

#include "model/dialects.hpp"

#include <charconv>
#include <string>

namespace stint::model {
namespace {

std::optional<std::int64_t> whole_number(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

}  // namespace

RateLimits read_rate_limits(Dialect dialect, const Headers& headers, WallTime now) {
  RateLimits limits;
  const RateNames& names = parts_of(dialect).rates;
  const auto read = [&](RateCounter& counter, std::string_view what) {
    if (what.empty()) return;
    const auto value = [&](std::string_view kind) {
      const std::string name = names.what_first ? std::string(names.prefix).append(what).append("-").append(kind)
                                                : std::string(names.prefix).append(kind).append("-").append(what);
      return header(headers, name);
    };
    RateCounter found;
    found.limit = whole_number(value("limit"));
    if (found.limit && *found.limit <= 0) return;
    found.remaining = whole_number(value("remaining"));
    if (found.remaining && *found.remaining < 0) found.remaining.reset();
    if (const auto reset = value("reset")) found.reset = parse_reset(*reset, now);
    counter = found;
  };
  read(limits.requests, names.requests);
  read(limits.tokens, names.tokens);
  read(limits.input_tokens, names.input_tokens);
  read(limits.output_tokens, names.output_tokens);
  return limits;
}

}  // namespace stint::model
