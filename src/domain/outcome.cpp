#include "domain/outcome.hpp"

namespace stint {

std::string_view to_string(OutcomeKind kind) noexcept {
  switch (kind) {
    case OutcomeKind::succeeded: return "succeeded";
    case OutcomeKind::agent_error: return "agent_error";
    case OutcomeKind::api_error: return "api_error";
    case OutcomeKind::rate_limited: return "rate_limited";
    case OutcomeKind::not_logged_in: return "not_logged_in";
    case OutcomeKind::permission_denied: return "permission_denied";
    case OutcomeKind::out_of_memory: return "out_of_memory";
    case OutcomeKind::crashed: return "crashed";
    case OutcomeKind::stalled: return "stalled";
    case OutcomeKind::cancelled: return "cancelled";
    case OutcomeKind::over_budget: return "over_budget";
    case OutcomeKind::in_doubt: return "in_doubt";
  }
  return "unknown";
}

std::optional<OutcomeKind> parse_outcome_kind(std::string_view name) noexcept {
  for (int i = 0; i <= static_cast<int>(OutcomeKind::in_doubt); ++i) {
    const auto kind = static_cast<OutcomeKind>(i);
    if (to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

}  // namespace stint
