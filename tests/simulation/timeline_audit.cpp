#include "timeline_audit.hpp"

#include "engine/timeline_core.hpp"

namespace stint::simulation {

std::string audit_timeline(const store::Run& run, const std::vector<store::Event>& events,
                           const pool::RunCodec& run_codec) {
  std::vector<engine::TimelineFact> facts;
  for (const store::Event& event : events) {
    engine::TimelineFact& fact = facts.emplace_back();
    fact.at = event.at;
    fact.cause = event.cause;
    fact.state = event.state;
    fact.hold = event.hold;
    fact.fence = event.fence;
    if (event.cause == "claimed") fact.waits = run_codec.read_waits(event.data);
  }
  const engine::Timeline timeline = engine::make_timeline(std::move(facts), run.created_at, {});
  WallTime cursor = run.created_at;
  for (const engine::Segment& each : timeline.segments) {
    if (each.at != cursor) return run.id + ": a segment of its timeline does not begin where the one before it ends";
    cursor += each.length;
  }
  const auto differs = cursor - *run.finished_at;
  const auto sum = timeline.waiting + timeline.working - (*run.finished_at - run.created_at);
  if (differs == differs.zero() && sum == sum.zero()) return {};
  return run.id + ": its timeline differs from its wall time by " + std::to_string(differs.count()) + " ms";
}

}  // namespace stint::simulation
