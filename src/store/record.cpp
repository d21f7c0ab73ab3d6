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
    return "it has " + std::to_string(record.events.size()) + " events, but its seq is " + std::to_string(run.seq);
  }
  std::int64_t seq = 0;
  Fence fence{};
  const Event* last = nullptr;
  for (const Event& event : record.events) {
    if (event.seq != ++seq) return "event " + std::to_string(seq) + " is missing";
    if (event.fence < fence) return "the fence of event " + std::to_string(seq) + " is lower than the one before it";
    fence = event.fence;
    if (!event.state) continue;
    if (last != nullptr && *event.state != *last->state &&
        !domain::is_transition(event.cause, *last->state, *event.state)) {
      return "event " + std::to_string(seq) +
             " is not an allowed transition:  " + std::string(to_string(*last->state)) + " to " +
             std::string(to_string(*event.state)) + " by '" + event.cause + "'";
    }
    last = &event;
  }
  if (last == nullptr) return "no event records its state";
  if (*last->state != run.state) {
    return "it is " + std::string(to_string(run.state)) + ", but its last event records  " +
           std::string(to_string(*last->state));
  }
  if (fence > run.fence) return "its fence is lower than that of its last event";
  return {};
}

}  // namespace

std::string contradiction(const RunRecord& record) {
  const Run& run = record.run;
  if (!domain::is_run_id(run.id)) return "'" + run.id + "' is not a run id";
  if (run.agent.empty()) return "it has no agent";
  if (domain::is_finished(run.state) != run.finished_at.has_value()) {
    return run.finished_at ? "it has an end time, but is " + std::string(to_string(run.state))
                           : "it is " + std::string(to_string(run.state)) + " without an end time";
  }
  if ((run.state == RunState::running) != run.node.has_value()) {
    return run.node ? "it has an owner, but is not running" : "it is running without an owner";
  }
  const bool waits = run.state == RunState::queued || run.state == RunState::parked;
  if (run.hold != Hold::none && !waits) {
    return "it is " + std::string(to_string(run.state)) + ", but has the hold " + std::string(to_string(run.hold));
  }
  if (run.tokens < 0 || run.cost_micros < 0) return "its tokens or cost are negative";
  for (const FamilyUse& family : record.families) {
    if (!domain::is_run_id(family.head))
      return "it draws on the budget of '" + family.head + "', which is not a run id";
    if (family.used.tokens < 0 || family.used.cost_micros < 0) return "tokens or cost of its family are negative";
  }
  const std::uint64_t kept = record.output.head.size() + record.output.tail.size();
  if (kept > record.output.bytes) return "it keeps more output than was written";
  if (record.output.head.size() > kOutputHeadMax || record.output.tail.size() > kOutputTailMax) {
    return "it keeps more output than the bound allows";
  }
  std::uint64_t messages = 0;
  for (const std::string& message : record.conversation) messages += message.size();
  if (messages > kConversationMax || record.conversation.size() > kMessagesMax) {
    return "its conversation is longer than the bound allows";
  }
  return in_events(record);
}

Result<> check_record(const RunRecord& record) {
  if (record.run.state == RunState::running) {
    return fail(Errc::conflict,
                "run " + record.run.id + " is running in the store it comes from. Wait for its end, or cancel it");
  }
  const std::string wrong = contradiction(record);
  if (!wrong.empty()) return fail(Errc::invalid, "run " + record.run.id + ": " + wrong);
  return {};
}

Error key_is_taken(const Run& run, const std::string& by) {
  return {Errc::conflict, "run " + run.id + " has the key '" + run.key + "', which run " + by + " has here"};
}

}  // namespace stint::store
