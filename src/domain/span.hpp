/// A part of a run that a timeline shows: a model call, a tool, a wait.
#pragma once

#include "domain/usage.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::domain {

enum class SpanKind : std::uint8_t { queue, limit, session, backoff, quota, person, model_call, tool, ending };
[[nodiscard]] std::string_view to_string(SpanKind kind) noexcept;

/// Reported when it is over.
struct Span {
  static constexpr std::size_t kNameMax = 200;
  SpanKind kind = SpanKind::model_call;
  std::string name;   ///< of the model, tool or limit
  Duration length{};  ///< it began so long before it was reported
  Usage usage;        ///< of this span alone
};

}  // namespace stint::domain
