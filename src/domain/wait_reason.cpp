#include "domain/wait_reason.hpp"

#include "domain/parse_name.hpp"

namespace stint::domain {

std::string_view to_string(WaitCause cause) noexcept {
  switch (cause) {
    case WaitCause::session: return "session";
    case WaitCause::delay: return "delay";
    case WaitCause::backoff: return "backoff";
    case WaitCause::quota: return "quota";
    case WaitCause::person: return "person";
    case WaitCause::paused: return "paused";
    case WaitCause::probe: return "probe";
    case WaitCause::limit: return "limit";
    case WaitCause::turn: return "turn";
    case WaitCause::place: return "place";
    case WaitCause::workers: return "workers";
    case WaitCause::shortage: return "shortage";
    case WaitCause::agent: return "agent";
    case WaitCause::permits: return "permits";
    case WaitCause::network: return "network";
    case WaitCause::ending: return "ending";
    case WaitCause::leftovers: return "leftovers";
    case WaitCause::store: return "store";
    case WaitCause::other: return "other";
  }
  return "unknown";
}
std::optional<WaitCause> parse_wait_cause(std::string_view name) noexcept { return parse_name(name, kWaitCauses); }

WaitCause cause_of(Hold hold) noexcept {
  switch (hold) {
    case Hold::session: return WaitCause::session;
    case Hold::delay: return WaitCause::delay;
    case Hold::backoff: return WaitCause::backoff;
    case Hold::quota: return WaitCause::quota;
    case Hold::person: return WaitCause::person;
    case Hold::none: break;
  }
  return WaitCause::place;
}

std::string_view to_string(Shortage::Kind kind) noexcept {
  switch (kind) {
    case Shortage::Kind::checkout: return "checkout";
    case Shortage::Kind::memory: return "memory";
    case Shortage::Kind::descriptors: return "descriptors";
    case Shortage::Kind::cost_per_day: return "cost_per_day";
  }
  return "unknown";
}
std::optional<Shortage::Kind> parse_shortage_kind(std::string_view name) noexcept {
  return parse_name(name, kShortageKinds);
}

}  // namespace stint::domain
