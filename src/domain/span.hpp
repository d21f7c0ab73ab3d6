/// A part of a run that a timeline shows: a model call, a tool, a wait.
#pragma once

#include "domain/usage.hpp"
#include "stint/time.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::domain {

enum class SpanKind : std::uint8_t { queue, limit, session, backoff, quota, person, model_call, tool, ending };
inline constexpr std::array kSpanKinds = {SpanKind::queue,      SpanKind::limit, SpanKind::session,
                                          SpanKind::backoff,    SpanKind::quota, SpanKind::person,
                                          SpanKind::model_call, SpanKind::tool,  SpanKind::ending};
[[nodiscard]] std::string_view to_string(SpanKind kind) noexcept;
[[nodiscard]] std::optional<SpanKind> parse_span_kind(std::string_view name) noexcept;

/// Reported when it is over.
struct Span {
  static constexpr std::size_t kNameMax = 200;
  SpanKind kind = SpanKind::model_call;
  std::string name;   ///< of the model, tool or limit
  Duration length{};  ///< it began so long before it was reported
  Usage usage;        ///< of this span alone
};

}  // namespace stint::domain
