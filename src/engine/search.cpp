#include "engine/search.hpp"

#include <algorithm>
#include <array>

namespace stint::engine {
namespace {

using domain::RunState;
using store::BatchAction;

constexpr std::array kCancellable = {RunState::queued, RunState::running, RunState::parked};
constexpr std::array kRetriable = {RunState::failed, RunState::cancelled, RunState::expired};

bool may_name(BatchAction action, RunState state) {
  return action == BatchAction::retry ? domain::is_finished(state) : !domain::is_finished(state);
}

}  // namespace

bool is_empty(const store::Filter& filter) noexcept {
  return filter.states.empty() && filter.holds.empty() && filter.agent.empty() && filter.session.empty() &&
         filter.parent.empty() && filter.search.empty() && !filter.since && !filter.until;
}

Result<store::Filter> filter_of(const BatchRequest& request) {
  store::Filter filter = request.filter;
  if (is_empty(filter)) {
    return fail(Errc::invalid, "the filter is empty: name a state, an agent or something else that the runs share");
  }
  if (filter.states.empty()) {
    const auto& states = request.action == BatchAction::cancel ? kCancellable : kRetriable;
    filter.states.assign(states.begin(), states.end());
    return filter;
  }
  std::erase_if(filter.states, [&](RunState state) { return !may_name(request.action, state); });
  if (!filter.states.empty()) return filter;
  return fail(Errc::invalid, request.action == BatchAction::cancel
                                 ? "runs in these states have ended: there is nothing to cancel"
                                 : "runs in these states have not ended: only an ended run can be retried");
}

}  // namespace stint::engine
