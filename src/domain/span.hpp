/// A stretch of a run that a person may want to see on a timeline: a model call, a tool, a wait.
#pragma once

#include "domain/usage.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::domain {

enum class SpanKind : std::uint8_t { queue, limit, session, backoff, quota, person, model_call, tool, ending };
[[nodiscard]] std::string_view to_string(SpanKind kind) noexcept;

/// Told when it is over.
struct Span {
  static constexpr std::size_t kNameMax = 200;
  SpanKind kind = SpanKind::model_call;
  std::string name;   ///< of the model, tool or limit
  Duration length{};  ///< it began so long before it was told
  Usage usage;        ///< of this span alone
};

}  // namespace stint::domain
