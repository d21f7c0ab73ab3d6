#include "store/why.hpp"

#include <algorithm>

namespace stint::store {

std::string_view to_string(WaitReason reason) noexcept {
  switch (reason) {
    case WaitReason::session: return "session";
    case WaitReason::delay: return "delay";
    case WaitReason::backoff: return "backoff";
    case WaitReason::quota: return "quota";
    case WaitReason::person: return "person";
    case WaitReason::paused: return "paused";
    case WaitReason::probe: return "probe";
    case WaitReason::limit: return "limit";
    case WaitReason::turn: return "turn";
    case WaitReason::place: return "place";
  }
  return "place";
}

std::optional<WaitReason> parse_wait_reason(std::string_view name) noexcept {
  const auto found = std::ranges::find(kWaitReasons, name, [](WaitReason reason) { return to_string(reason); });
  return found == kWaitReasons.end() ? std::nullopt : std::optional(*found);
}

}  // namespace stint::store
