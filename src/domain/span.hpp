/// A stretch of a run that a timeline shows: a model call, a tool, a wait.
#pragma once

#include "domain/usage.hpp"
#include "stint/time.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::domain {

enum class SpanKind : std::uint8_t {
  queue,    ///< ready; nothing more is known
  limit,    ///< in line for a named limit
  session,  ///< an earlier run of its session was unfinished
  delay,
  backoff,
  quota,
  person,  ///< parked until a person answers, or in doubt
  model_call,
  tool,
  ending,   ///< from the request to end the attempt until nothing of it was alive
  working,  ///< the rest of an attempt
};
inline constexpr std::array kSpanKinds = {SpanKind::queue,   SpanKind::limit,  SpanKind::session, SpanKind::delay,
                                          SpanKind::backoff, SpanKind::quota,  SpanKind::person,  SpanKind::model_call,
                                          SpanKind::tool,    SpanKind::ending, SpanKind::working};
[[nodiscard]] std::string_view to_string(SpanKind kind) noexcept;
[[nodiscard]] std::optional<SpanKind> parse_span_kind(std::string_view name) noexcept;

/// Reported when it is over.
struct Span {
  static constexpr std::size_t kNameMax = 200, kTextMax = 1 << 10;
  SpanKind kind = SpanKind::model_call;
  std::string name;                          ///< of the model, tool or limit
  Duration length{};                         ///< it began so long before it was reported
  Usage usage;                               ///< of this span alone
  std::string text{};                        ///< of a tool: the beginning of its result
  std::optional<std::uint64_t> output_at{};  ///< how much output the run had when it ended; the recorder sets it
};

/// How long the ready runs of an agent waited for a limit, as the node that claims one of them saw it.
struct LimitWait {
  std::string limit;
  Duration ago{};  ///< it began so long before the claim
  Duration length{};

  friend bool operator==(const LimitWait&, const LimitWait&) = default;
};

}  // namespace stint::domain
