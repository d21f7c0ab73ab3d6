/// One call of the API, as its handlers see it: the request, the caller, and the parameters that several handlers read.
/// Internal to this folder.
#pragma once

#include "agent/text.hpp"
#include "domain/bounds.hpp"
#include "domain/trace.hpp"
#include "engine/views.hpp"
#include "http/answers.hpp"
#include "http/api.hpp"
#include "http/negotiate.hpp"

#include <fmt/format.h>

#include <charconv>
#include <expected>
#include <limits>

namespace stint::http {

inline constexpr std::uint32_t kPage = 100, kPageMax = 1000;
inline constexpr std::int64_t kNumberMax = std::numeric_limits<std::int64_t>::max();
inline constexpr std::string_view kListedState = "state", kListedHold = "hold";  // the parameters that may be repeated

template <class Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class Number>
[[nodiscard]] Result<Number> checked_number(std::string_view name, std::string_view text, Number least, Number most) {
  const auto value = parse_number<Number>(text);
  if (!value || *value < least || *value > most) {
    return fail(Errc::invalid, fmt::format("'{}' must be a whole number from {} to {}, not '{}'", name, least, most,
                                           agent::excerpt(text)));
  }
  return *value;
}

/// A name from a request, made safe for a message.
[[nodiscard]] inline std::string shown(std::string_view name) {
  return agent::excerpt(name, domain::kShownNameBytesMax);
}

[[nodiscard]] inline std::string text(std::optional<std::string_view> value) { return std::string(value.value_or("")); }

struct Api::Call {
  const Request& request;
  Exchange& exchange;
  std::string id;      // from the path: a run id or the name of a limit
  std::string caller;  // the run whose token the request carries; empty: a person

  /// Reads a number from the query.
  template <class Number>
  Result<Number> number(std::string_view name, Number fallback, Number least, Number most) const {
    const auto given = request.parameter(name);
    return given ? checked_number(name, *given, least, most) : Result<Number>(fallback);
  }
  Result<std::uint32_t> page_size() const { return number<std::uint32_t>("limit", kPage, 1, kPageMax); }
  /// Empty: no key was sent. An empty key is refused: a client that repeats its request would start a second run.
  [[nodiscard]] Result<std::string> idempotency_key() const {
    const auto given = request.header("Idempotency-Key");
    if (given && given->empty()) return fail(Errc::invalid, "'Idempotency-Key' is empty: leave it out, or send a key");
    return text(given);
  }
  /// The caller's own name for the run; empty: none.
  [[nodiscard]] std::string trace() const {
    const auto given = request.header("traceparent");
    return given ? domain::trace_of(*given).value_or("") : std::string();
  }
  [[nodiscard]] bool wants_stream() const { return accepts_stream(request); }
};

/// The run named in the path, or a 404.
[[nodiscard]] Task<std::expected<engine::RunView, Response>> look_up(fleet::Fleet& fleet, std::string id);

}  // namespace stint::http
