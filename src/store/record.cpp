#include "store/record.hpp"

#include "domain/run_id.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;

std::string in_events(const RunRecord& record) {
  const Run& run = record.run;
  if (std::ssize(record.events) != run.seq) {
    return "it has " + std::to_string(record.events.size()) + " events and counts " + std::to_string(run.seq);
  }
  std::int64_t seq = 0, fence = 0;
  const Event* last = nullptr;
  for (const Event& event : record.events) {
    if (event.seq != ++seq) return "event " + std::to_string(seq) + " is missing";
    if (event.fence < fence) return "the fence of event " + std::to_string(seq) + " is lower than the one before it";
    fence = event.fence;
    if (!event.state) continue;
    if (last != nullptr && *event.state != *last->state &&
        !domain::is_transition(event.cause, *last->state, *event.state)) {
      return "event " + std::to_string(seq) + " is no change that there is: " + std::string(to_string(*last->state)) +
             " to " + std::string(to_string(*event.state)) + " by '" + event.cause + "'";
    }
    last = &event;
  }
  if (last == nullptr) return "no event says its state";
  if (*last->state != run.state) {
    return "it is " + std::string(to_string(run.state)) + ", and its last event says " +
           std::string(to_string(*last->state));
  }
  if (fence > run.fence) return "its fence is lower than that of its last event";
  return {};
}

}  // namespace

std::string contradiction(const RunRecord& record) {
  const Run& run = record.run;
  if (!domain::is_run_id(run.id)) return "'" + run.id + "' is no id of a run";
  if (run.agent.empty()) return "it has no agent";
  if (domain::is_finished(run.state) != run.finished_at.has_value()) {
    return run.finished_at ? "it has an end, and is " + std::string(to_string(run.state))
                           : "it is " + std::string(to_string(run.state)) + " without an end";
  }
  if ((run.state == RunState::running) != run.node.has_value()) {
    return run.node ? "it has an owner and does not run" : "it runs and has no owner";
  }
  const bool waits = run.state == RunState::queued || run.state == RunState::parked;
  if (run.hold != Hold::none && !waits) {
    return "it is " + std::string(to_string(run.state)) + " and waits: " + std::string(to_string(run.hold));
  }
  if (run.tokens < 0 || run.cost_micros < 0) return "it used less than nothing";
  for (const FamilyUse& family : record.families) {
    if (!domain::is_run_id(family.head))
      return "it draws on the budget of '" + family.head + "', which is no id of a run";
    if (family.used.tokens < 0 || family.used.cost_micros < 0) return "its family used less than nothing";
  }
  const std::uint64_t kept = record.output.head.size() + record.output.tail.size();
  if (kept > record.output.bytes) return "more output is kept than was written";
  if (record.output.head.size() > kOutputHeadMax || record.output.tail.size() > kOutputTailMax) {
    return "more output is kept than the bound allows";
  }
  return in_events(record);
}

Result<> check_record(const RunRecord& record) {
  if (record.run.state == RunState::running) {
    return fail(Errc::conflict, "run " + record.run.id + " is running: it has an owner where it comes from");
  }
  const std::string wrong = contradiction(record);
  if (!wrong.empty()) return fail(Errc::invalid, "run " + record.run.id + ": " + wrong);
  return {};
}

Error key_is_taken(const Run& run, const std::string& by) {
  return {Errc::conflict, "run " + run.id + " has the key '" + run.key + "', which run " + by + " has here"};
}

}  // namespace stint::store
