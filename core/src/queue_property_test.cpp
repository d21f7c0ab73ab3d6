// Random producers, consumers, cancels, deadlines and a close on one queue, compared with a naive model after every
// step. A failing seed reproduces the failure: `explore_queue(seed)`.
#include "stint/queue.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace stint {
namespace {

/// The documented behaviour in its simplest form: sorted lists, searched from the front.
struct QueueModel {
  static constexpr std::size_t kCapacity = 2;
  struct Wait {
    int ticket, item;
    TimePoint deadline;
  };
  using Item = std::pair<int, int>;  // its place, and what it is

  void take_in(int item) {
    if (consumers.empty()) return items.emplace_back(places++, item), void();
    handed[consumers.front().ticket] = {places++, item};
    consumers.pop_front();
  }
  void admit() {
    while (!producers.empty() && items.size() < kCapacity) {
      accepted.insert(producers.front().ticket);
      take_in(producers.front().item);
      producers.pop_front();
    }
  }
  bool room() const { return !closed && (!consumers.empty() || items.size() < kCapacity); }

  void push(const Wait& wait) {
    if (closed) return;
    producers.push_back(wait);
    if (!consumers.empty()) {
      accepted.insert(wait.ticket);
      take_in(wait.item);
      producers.pop_front();
    } else {
      admit();
    }
  }
  void pop(const Wait& wait) {
    if (items.empty()) {
      if (!closed) consumers.push_back(wait);
      return;
    }
    handed[wait.ticket] = items.front();
    items.erase(items.begin());
    admit();
  }
  void push_gone(int ticket, int item) {
    if (accepted.erase(ticket) == 0) return;
    std::erase_if(items, [item](const Item& here) { return here.second == item; });
    admit();
  }
  void pop_gone(int ticket) {
    const auto found = handed.find(ticket);
    if (found == handed.end()) return;
    const Item item = found->second;
    handed.erase(found);
    if (consumers.empty()) {
      items.insert(std::ranges::upper_bound(items, item), item);
    } else {
      handed[consumers.front().ticket] = item;
      consumers.pop_front();
    }
  }
  template <class Gone>
  void leave_if(Gone gone) {
    std::erase_if(producers, gone);
    std::erase_if(consumers, gone);
  }
  void close() {
    closed = true;
    producers.clear();
    consumers.clear();
  }

  std::vector<Item> items;
  std::deque<Wait> producers, consumers;
  std::map<int, Item> handed;  // consumer's ticket → the item handed to it
  std::set<int> accepted;      // tickets of producers whose items were accepted
  int places = 0;
  bool closed = false;
};

struct QueueWorld {
  static constexpr int kWorkers = 8, kRounds = 5;
  explicit QueueWorld(std::uint64_t seed) { sim.emplace(seed); }
  std::uint64_t draw(std::uint64_t below) { return sim->random()() % below; }
  Duration milliseconds(std::uint64_t most) { return std::chrono::milliseconds(1 + draw(most)); }
  TimePoint draw_deadline() {
    if (draw(3) != 0) return TimePoint::max();
    TimePoint deadline = sim->now() + milliseconds(30);
    while (!deadlines.insert(deadline).second) deadline += 1ms;
    return deadline;
  }
  void check(bool right, const char* what) {
    if (!right && wrong.empty()) wrong = what;
  }

  QueueModel model;
  Queue<int> queue{"explored", QueueModel::kCapacity};
  std::map<int, int> waiting;  // worker → ticket
  int tickets = 0;
  std::set<TimePoint> deadlines;  // all different, so that the model need not know the order within a tick
  std::string wrong;
  std::vector<std::unique_ptr<RootScope>> scopes;
  std::optional<Simulator> sim;  // last member: destroyed first, with every frame
};

Task<> explored_push(QueueWorld& world, int id) {
  struct Turn {  // updates the model when the frame is destroyed before its push completed
    ~Turn() {
      world.waiting.erase(id);
      if (!seen) world.model.push_gone(ticket, ticket);
    }
    QueueWorld& world;
    int id, ticket;
    bool seen = false;
  } turn{world, id, world.tickets++};
  const TimePoint deadline = world.draw_deadline();
  world.waiting[id] = turn.ticket;
  world.model.push({turn.ticket, turn.ticket, deadline});
  const auto pushed = deadline == TimePoint::max() ? co_await world.queue.push(turn.ticket)
                                                   : co_await world.queue.push_until(deadline, turn.ticket);
  turn.seen = true;
  world.check(pushed.has_value() == (world.model.accepted.erase(turn.ticket) != 0), "a push ended otherwise");
}
Task<> explored_pop(QueueWorld& world, int id) {
  struct Turn {
    ~Turn() {
      world.waiting.erase(id);
      if (!seen) world.model.pop_gone(ticket);
    }
    QueueWorld& world;
    int id, ticket;
    bool seen = false;
  } turn{world, id, world.tickets++};
  const TimePoint deadline = world.draw_deadline();
  world.waiting[id] = turn.ticket;
  world.model.pop({turn.ticket, 0, deadline});
  const auto item =
      deadline == TimePoint::max() ? co_await world.queue.pop() : co_await world.queue.pop_until(deadline);
  turn.seen = true;
  const auto expected = world.model.handed.extract(turn.ticket);
  world.check(item.has_value() != expected.empty(), "a pop ended otherwise");
  if (item && expected) world.check(*item == expected.mapped().second, "a pop gave another item");
}
void explore_try_push(QueueWorld& world) {
  const int item = world.tickets++;
  const bool room = world.model.room();
  world.check(world.queue.try_push(int{item}).has_value() == room, "try_push differs from the model");
  if (room) world.model.take_in(item);
}
void explore_drop_oldest(QueueWorld& world) {
  const int item = world.tickets++;
  const bool refused = world.model.closed || !world.model.producers.empty();
  std::optional<int> dropped;
  if (!refused && !world.model.room()) {
    dropped = world.model.items.front().second;
    world.model.items.erase(world.model.items.begin());
  }
  const auto pushed = world.queue.push_dropping_oldest(item);
  world.check(pushed.has_value() != refused, "push_dropping_oldest differs from the model");
  if (refused) return;
  world.check(*pushed == dropped, "another item was dropped");
  world.model.take_in(item);
}
void explore_try_pop(QueueWorld& world) {
  std::optional<int> expected;
  if (!world.model.items.empty()) {
    expected = world.model.items.front().second;
    world.model.items.erase(world.model.items.begin());
    world.model.admit();
  }
  world.check(world.queue.try_pop() == expected, "try_pop differs from the model");
}
Task<> explored_worker(QueueWorld& world, int id) {
  for (int round = 0; round < QueueWorld::kRounds; ++round) {
    for (auto pause = world.draw(3); pause > 0; --pause) co_await yield();
    switch (world.draw(11)) {
      case 0: explore_try_push(world); break;
      case 1: explore_drop_oldest(world); break;
      case 2: explore_try_pop(world); break;
      case 3:
      case 4:
      case 5:
      case 6: co_await explored_push(world, id); break;
      default: co_await explored_pop(world, id); break;
    }
  }
}
Task<> explored_troubles(QueueWorld& world) {
  for (int i = 0; i < 10; ++i) {
    if (world.draw(2) == 0)
      co_await sleep_for(world.milliseconds(8));
    else
      co_await yield();
    const int id = static_cast<int>(world.draw(QueueWorld::kWorkers));
    if (world.draw(2) == 0) continue;
    world.scopes[static_cast<std::size_t>(id)]->cancel();
    if (const auto found = world.waiting.find(id); found != world.waiting.end()) {
      world.model.leave_if([ticket = found->second](const QueueModel::Wait& wait) { return wait.ticket == ticket; });
    }
  }
  world.queue.close();
  world.model.close();
}

/// No other waiter proceeds because one gave up.
void expire(QueueModel& model, TimePoint now) {
  model.leave_if([now](const QueueModel::Wait& wait) { return wait.deadline <= now; });
}

/// The failure found with this seed; empty if none.
std::string explore_queue(std::uint64_t seed) {
  QueueWorld world(seed);
  for (int id = 0; id <= QueueWorld::kWorkers; ++id) world.scopes.push_back(std::make_unique<RootScope>(*world.sim));
  for (int id = 0; id < QueueWorld::kWorkers; ++id)
    world.scopes[static_cast<std::size_t>(id)]->spawn(explored_worker(world, id));
  world.scopes.back()->spawn(explored_troubles(world));
  const auto all_idle = [&world] {
    return std::ranges::all_of(world.scopes, [](auto& scope) { return scope->idle(); });
  };
  while (!all_idle()) {
    if (!world.sim->step()) return "a wait can never complete";
    expire(world.model, world.sim->now());
    if (!world.wrong.empty()) return world.wrong;
    if (world.queue.size() != world.model.items.size()) return "the items differ from the model";
    if (world.queue.waiting_producers() != world.model.producers.size()) return "the producers differ from the model";
    if (world.queue.waiting_consumers() != world.model.consumers.size()) return "the consumers differ from the model";
  }
  for (const auto& [place, item] : world.model.items) {
    if (world.queue.try_pop() != item) return "what is left differs from the model";
  }
  return world.queue.size() == 0 ? "" : "more is left than in the model";
}

TEST(QueueExplorer, ten_thousand_seeds_agree_with_the_model) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) ASSERT_EQ(explore_queue(seed), "") << "seed " << seed;
}

}  // namespace
}  // namespace stint
