// LocalFleet: the timeline of a run, from its events.
#include "fleet/local_fleet.hpp"

namespace stint::fleet {
namespace {

constexpr std::uint32_t kEventsPage = 1000;
constexpr std::size_t kTimelineEventsMax = 100'000;  // 25 attempts full of notes

/// Notes that the timeline does not show. They are most of a long history.
bool is_note(const store::Event& event) {
  return event.cause == "tool" || event.cause == "note" || event.cause == "conversation";
}

}  // namespace

engine::TimelineFact LocalFleet::fact_of(store::Event event) const {
  engine::TimelineFact fact;
  fact.at = event.at;
  fact.state = event.state;
  fact.hold = event.hold;
  fact.fence = event.fence;
  fact.node = event.node;
  fact.error = std::move(event.error);
  if (event.cause == "span") fact.span = parts_.run_codec.read_span(event.data);
  if (event.cause == "claimed" && !event.data.empty()) fact.waits = parts_.run_codec.read_waits(event.data);
  const bool ends = event.state && event.state != domain::RunState::running && event.cause != "claimed";
  if (ends && !event.data.empty()) fact.verdict = parts_.run_codec.read_verdict(event.data);
  fact.cause = std::move(event.cause);
  return fact;
}

Task<Result<Timeline>> LocalFleet::timeline(std::string id) {
  STINT_CO_TRY(const RunView found, co_await must_find(std::move(id)));
  std::vector<engine::TimelineFact> facts;
  std::int64_t seq = 0;
  std::size_t read = 0;
  for (bool more = true; more && read < kTimelineEventsMax;) {
    STINT_CO_TRY(std::vector<store::Event> page, co_await parts_.store.events(found.run.id, seq, kEventsPage));
    more = page.size() == kEventsPage;
    read += page.size();
    for (store::Event& event : page) {
      seq = event.seq;
      if (!is_note(event)) facts.push_back(fact_of(std::move(event)));
    }
  }
  std::uint64_t left_out = 0;
  if (found.run.seq > seq) {  // the last event says in which state the run is
    STINT_CO_TRY(std::vector<store::Event> last, co_await parts_.store.events(found.run.id, found.run.seq - 1, 1));
    for (store::Event& event : last) facts.push_back(fact_of(std::move(event)));
    left_out = static_cast<std::uint64_t>(found.run.seq - seq) - last.size();
  }
  std::vector<domain::LimitWait> waits;
  if (parts_.engine != nullptr) {
    waits = parts_.engine->limit_waits().of(name_in_store_of(found), parts_.executor.now());
  }
  Timeline timeline = engine::make_timeline(std::move(facts), parts_.system.wall_now(), std::move(waits));
  timeline.run = found.run.id;
  STINT_CO_TRY(const std::vector<store::FamilyUse> used, co_await parts_.store.used({found.run.id}));
  if (!used.empty()) timeline.used = used.front().used;
  timeline.events_left_out = left_out;
  const auto spec = parts_.registry().find(found.run.agent);
  timeline.budget = found.input.budget;
  if (spec != parts_.registry().end()) timeline.budget = found.input.budget.or_else(spec->second.budget);
  co_return timeline;
}

}  // namespace stint::fleet
