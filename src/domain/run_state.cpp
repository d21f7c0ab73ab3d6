#include "domain/run_state.hpp"

#include "domain/parse_name.hpp"
#include "domain/run_causes.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

RunState stopped(Stop stop) noexcept { return stop == Stop::expired ? RunState::expired : RunState::cancelled; }

constexpr std::array kHolds = {Hold::none, Hold::session, Hold::delay, Hold::backoff, Hold::quota, Hold::person};

using enum RunState;

constexpr std::array kTransitions = {
    Transition{"promoted", queued, queued},  // the head of its session has ended
    Transition{"woken", queued, queued},     // a delay or back-off is over
    Transition{"woken", parked, queued},     // its quota is available again
    Transition{"answered", parked, queued},
    Transition{"limit_resumed", parked, queued},
    Transition{"loaded", queued, queued},  // from another store, behind runs of its session that exist here
    Transition{"claimed", queued, running},
    Transition{"unsafe", running, running},
    Transition{"safe", running, running},
    Transition{"cancel_asked", running, running},
    Transition{"cancelled", queued, cancelled},
    Transition{"cancelled", parked, cancelled},
    Transition{"expired", queued, expired},
    Transition{"expired", parked, expired},
    Transition{"resolved_done", in_doubt, succeeded},
    Transition{"resolved_rerun", in_doubt, queued},
    Transition{"resolved_discard", in_doubt, cancelled},
};

/// Whether `settle` can lead from `running` to `to`, for any facts.
bool can_settle(Settle settle, RunState to) noexcept {
  switch (settle) {
    case Settle::succeeded: return to == succeeded;
    case Settle::failed: return to == failed || to == cancelled || to == expired;
    case Settle::retry:
    case Settle::lost: return to == queued || to == failed || to == cancelled || to == expired || to == in_doubt;
    case Settle::park: return to == parked || to == cancelled || to == expired || to == in_doubt;
    case Settle::hand_back: return to == queued || to == cancelled || to == expired || to == in_doubt;
    case Settle::cancelled:
    case Settle::expired: return to == cancelled || to == expired || to == in_doubt;
  }
  return false;
}

}  // namespace

std::string_view to_string(RunState state) noexcept {
  switch (state) {
    case queued: return "queued";
    case running: return "running";
    case parked: return "parked";
    case succeeded: return "succeeded";
    case failed: return "failed";
    case cancelled: return "cancelled";
    case expired: return "expired";
    case in_doubt: return "in_doubt";
  }
  return "unknown";
}
std::optional<RunState> parse_run_state(std::string_view name) noexcept { return parse_name(name, kRunStates); }

std::string_view to_string(Hold hold) noexcept {
  switch (hold) {
    case Hold::none: return "none";
    case Hold::session: return "session";
    case Hold::delay: return "delay";
    case Hold::backoff: return "backoff";
    case Hold::quota: return "quota";
    case Hold::person: return "person";
  }
  return "unknown";
}
std::optional<Hold> parse_hold(std::string_view name) noexcept { return parse_name(name, kHolds); }

std::string_view to_string(Settle settle) noexcept {
  switch (settle) {
    case Settle::succeeded: return "succeeded";
    case Settle::failed: return "failed";
    case Settle::retry: return "retry";
    case Settle::park: return "park";
    case Settle::hand_back: return "hand_back";
    case Settle::cancelled: return "cancelled";
    case Settle::expired: return "expired";
    case Settle::lost: return "lost";
  }
  return "unknown";
}

std::string_view to_string(Stop stop) noexcept {
  switch (stop) {
    case Stop::none: return "none";
    case Stop::cancelled: return "cancelled";
    case Stop::expired: return "expired";
  }
  return "unknown";
}

std::string_view to_string(Resolution resolution) noexcept {
  switch (resolution) {
    case Resolution::done: return "done";
    case Resolution::rerun: return "rerun";
    case Resolution::discard: return "discard";
  }
  return "unknown";
}
std::optional<Resolution> parse_resolution(std::string_view name) noexcept { return parse_name(name, kResolutions); }

RunState after_resolution(Resolution resolution) noexcept {
  switch (resolution) {
    case Resolution::done: return succeeded;
    case Resolution::rerun: return queued;
    case Resolution::discard: return cancelled;
  }
  return cancelled;
}

RunState after_settle(const SettleFacts& facts) noexcept {
  const Settle settle = facts.settle;
  if (settle == Settle::succeeded) return succeeded;  // also after a late cancel
  if (settle == Settle::failed) return facts.stop == Stop::none ? failed : stopped(facts.stop);
  if (facts.unsafe) return in_doubt;  // unknown effects outrank a cancel
  if (facts.stop != Stop::none || settle == Settle::cancelled) return stopped(facts.stop);
  if (settle == Settle::expired) return expired;
  if (settle == Settle::lost && facts.on_crash == OnCrash::doubt) return in_doubt;
  if (settle == Settle::lost && facts.lost + 1 >= facts.lost_max) return failed;  // the run may crash its nodes
  if (settle == Settle::retry && facts.attempt >= facts.attempts_max) return failed;
  if (settle == Settle::park) return facts.deadline_first ? expired : parked;
  return facts.expires_first ? expired : queued;  // no time for another attempt: ends now, with its last real error
}

std::string error_of_loss(RunState next, std::uint32_t times) {
  if (next == in_doubt) return "the process that carried it was lost: what it did until then is unknown";
  if (next != failed) return {};
  return "the process that carried it was lost " + (times == 1 ? "once" : std::to_string(times) + " times") +
         ": the run may be the cause. `stint retry` runs it again";
}

bool is_transition(std::string_view cause, RunState from, RunState to) noexcept {
  if (from == running) {
    const auto settle = std::ranges::find_if(kSettles, [&](Settle value) { return to_string(value) == cause; });
    if (settle != kSettles.end()) return can_settle(*settle, to);
  }
  return std::ranges::any_of(kTransitions, [&](const Transition& transition) {
    return transition.cause == cause && transition.from == from && transition.to == to;
  });
}

std::set<std::string_view> run_causes() {
  std::set<std::string_view> causes = {kEnqueued};
  for (const Transition& transition : kTransitions) causes.insert(transition.cause);
  for (const Settle settle : kSettles) causes.insert(to_string(settle));
  return causes;
}

}  // namespace stint::domain
