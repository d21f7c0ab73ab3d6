#include "fleet_reader.hpp"

#include "world.hpp"

namespace stint::simulation {
namespace {

constexpr std::uint32_t kFeedPage = 50;

}  // namespace

void FleetReader::take(const store::Event& event) {
  if (event.run.empty()) return;
  std::int64_t& last = seqs_[event.run];
  if (event.seq != last + 1) {
    world_.find_fault("the feed tells event " + std::to_string(event.seq) + " of run " + event.run + " after " +
                      std::to_string(last));
  }
  last = event.seq;
  if (!event.state) return;
  if (event.seq > 1) --counts_[states_[event.run]];
  states_[event.run] = *event.state;
  ++counts_[*event.state];
}

void FleetReader::compare(const store::Snapshot& now) {
  for (const domain::RunState state : domain::kRunStates) {
    if (now.count(state) == counts_[state]) continue;
    world_.find_fault("the snapshot counts " + std::to_string(now.count(state)) + " runs that are " +
                      std::string(to_string(state)) + ", its predecessor and the feed " +
                      std::to_string(counts_[state]));
  }
  const store::QueueSplit split = store::split_queue(now, now.limits);
  std::uint64_t queued = split.startable;
  for (const store::WaitGroup& group : split.held) queued += group.runs;
  if (queued != now.count(domain::RunState::queued)) {
    world_.find_fault("the parts of the queue have " + std::to_string(queued) + " runs");
  }
  std::uint64_t owned = 0;
  for (const store::NodeState& node : now.nodes) owned += node.runs;
  if (owned != now.count(domain::RunState::running)) {
    world_.find_fault("the nodes own " + std::to_string(owned) + " runs, and another number is running");
  }
}

/// The feed is followed from its beginning, so that each run is known from its first event on.
void FleetReader::look() {
  const auto now = world_.ask(world_.store().snapshot(0, 0));
  if (!now) return world_.find_fault("there is no snapshot");
  while (cursor_ != now->cursor) {
    const auto page = world_.ask(world_.store().feed(cursor_, kFeedPage));
    if (!page || page->pruned) return world_.find_fault("the feed can't be followed");
    if (page->events.empty()) break;
    for (const store::Event& event : page->events) {  // events of after the snapshot may have come meanwhile
      if (cursor_ == now->cursor) break;
      take(event);
      cursor_ = event.cursor;
    }
  }
  compare(*now);
}

}  // namespace stint::simulation
