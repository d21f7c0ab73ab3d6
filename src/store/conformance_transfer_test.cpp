// Transfer of every store's content to another store, and its consistency.
#include "store/audit.hpp"
#include "store/conformance.hpp"
#include "store/memory_store.hpp"
#include "store/transfer.hpp"

#include <fmt/format.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;
using Ids = std::vector<std::string>;

std::string text(std::optional<WallTime> time) { return time ? std::to_string(domain::to_unix_ms(*time)) : "-"; }
std::string text(std::optional<Duration> duration) {
  return duration ? std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(*duration).count()) : "-";
}

/// The data that must be the same in each store.
std::string describe(const RunRecord& record) {
  const Run& run = record.run;
  std::string out = fmt::format(
      "{} {} session={} parent={} key={} {} {} {} error={} input={} result={} attempt={} lost={} fence={} seq={} "
      "used={}:{} "
      "unsafe={} {} node={} created={} not_before={} deadline={} expires={} started={} finished={} rank={} budget={} "
      "left={} until={} parked_on={} output={}:{}:{}\n",
      run.id, run.agent, run.session, run.parent, run.key, to_string(run.state), to_string(run.hold),
      to_string(run.stop), run.error, run.input, run.result, run.attempt, run.lost, run.fence.value, run.seq,
      run.tokens, run.cost_micros, run.unsafe, to_string(run.on_crash), run.node.has_value(), text(run.created_at),
      text(run.not_before), text(run.deadline), text(run.expires_at), text(run.started_at), text(run.finished_at),
      record.rank, text(record.budget), text(record.budget_left), text(record.budget_until), record.parked_on,
      record.output.bytes, record.output.head, record.output.tail);
  for (const std::string& message : record.conversation) out += fmt::format("  message {}\n", message);
  for (const Event& event : record.events) {
    out += fmt::format("  {} {} {} {} {} {} error={} data={} {}\n", event.run, event.seq, event.fence.value,
                       event.cause, event.state ? to_string(*event.state) : "-", to_string(event.hold), event.error,
                       event.data, text(event.at));
  }
  return out;
}

template <class T>
T get_of(World& world, Task<Result<T>> task) {
  Result<T> result = world.run(std::move(task));
  if (!result) ADD_FAILURE() << result.error().describe();
  if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T();
}

std::vector<RunRecord> records(World& world) { return get_of(world, world.store().dump({}, 1000)); }

std::vector<std::string> all(World& world) {
  std::vector<std::string> found;
  for (const RunRecord& record : records(world)) found.push_back(describe(record));
  return found;
}

struct Moves {
  Moved copied, added;
};
/// Through a store in memory: each of the two has its own reactor.
Moves move(World& from, World& into) {
  const domain::System system = from.clocks().system([] { return std::uint64_t{1}; });
  MemoryStore between(system);
  StoreSink first(between), second(into.store());
  Moves moves;
  moves.copied = get_of(from, copy_store(from.store(), first));
  EXPECT_EQ(get_of(into, copy_store(between, second)), moves.copied);
  moves.added = second.added();
  return moves;
}

void expect_sound(World& world) { EXPECT_EQ(get_of(world, audit(world.store())).findings, std::vector<std::string>()); }

void define_in(World& world, const std::string& name) {
  AgentEntry agent;
  agent.name = name;
  get_of(world, world.store().define({agent}));
}

TEST_P(StoreTest, a_transfer_copies_the_whole_store) {
  make_run_of_every_kind();
  const auto other = GetParam().make(), third = GetParam().make();
  const Moves moves = move(world(), *other);
  EXPECT_EQ(moves.copied.runs, 14U);
  EXPECT_EQ(moves.copied.agents, 3U);
  EXPECT_EQ(moves.added, moves.copied);
  EXPECT_EQ(all(world()), all(*other));
  EXPECT_EQ(get(store().agents()), get_of(*other, other->store().agents()));
  const auto limits = get_of(*other, other->store().limits());
  ASSERT_EQ(limits.size(), 3U);
  EXPECT_TRUE(limits[0].paused);
  EXPECT_EQ(limits[1].capacity, 9U);
  expect_sound(world());
  expect_sound(*other);

  EXPECT_EQ(move(*other, *third).added.runs, 14U);
  EXPECT_EQ(all(world()), all(*third));
}

TEST_P(StoreTest, transferred_runs_continue_in_the_new_store) {
  make_run_of_every_kind();
  const auto other = GetParam().make();
  move(world(), *other);
  for (const char* const agent : {"a", "b", "c"}) {
    Ids here = claimed_ids(enrol(), agent, 9), there;
    const NodeNumber node = get_of(*other, other->store().enrol("test"));
    for (const Claim& claim : get_of(*other, other->store().claim(node, agent, 9))) there.push_back(claim.id);
    EXPECT_EQ(here, there) << agent;
  }
  expect_sound(*other);
}

TEST_P(StoreTest, a_repeated_transfer_adds_nothing) {
  make_run_of_every_kind();
  const auto other = GetParam().make();
  move(world(), *other);
  const auto before = all(*other);
  EXPECT_EQ(move(world(), *other).added, Moved());
  EXPECT_EQ(all(*other), before);
}

TEST_P(StoreTest, a_record_loaded_twice_is_stored_once) {
  define("a");
  submit("a");
  std::vector<RunRecord> twice = records(world());
  twice.push_back(twice.front());
  const auto other = GetParam().make();
  define_in(*other, "a");
  EXPECT_EQ(get_of(*other, other->store().load(twice)), 1U);
  EXPECT_EQ(all(*other), all(world()));
}

TEST_P(StoreTest, a_store_with_running_runs_is_not_transferred) {
  define("a");
  submit("a");
  const NodeNumber node = enrol();
  claim_one(node, "a");
  const domain::System system = world().clocks().system([] { return std::uint64_t{1}; });
  MemoryStore other(system);
  StoreSink sink(other);
  EXPECT_EQ(error_of(copy_store(store(), sink)), Errc::conflict);
  const auto third = GetParam().make();
  define_in(*third, "a");
  const auto refused = third->run(third->store().load(records(world())));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::conflict) << "its owner exists only there";
  world().kill(node);
  EXPECT_EQ(get(copy_store(store(), sink)).runs, 1U) << "runs of a dead node are taken back first";
}

TEST_P(StoreTest, an_inconsistent_record_is_refused) {
  make_run_of_every_kind();
  const auto other = GetParam().make();
  for (const char* const name : {"a", "b", "c"}) define_in(*other, name);
  const std::vector<RunRecord> sound = records(world());
  const auto refused = [&](const std::function<void(RunRecord&)>& change) {
    RunRecord record = sound.front();
    change(record);
    const auto answer = other->run(other->store().load({record}));
    return !answer && answer.error() == Errc::invalid;
  };
  EXPECT_TRUE(refused([](RunRecord& record) { record.events.clear(); }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.run.seq = 2; }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.events[0].seq = 2; }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.events[0].fence = Fence{1}; }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.run.state = RunState::parked; }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.run.finished_at = record.run.created_at; }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.run.node = NodeNumber{1}; }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.run.id = "no"; }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.run.agent = "unknown"; }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.output.head = "x"; }));
  EXPECT_TRUE(refused([](RunRecord& record) { record.run.tokens = -1; }));
  EXPECT_TRUE(refused([](RunRecord& record) {  // not an allowed transition
    Event end = record.events[0];
    end.seq = record.run.seq = 2;
    end.state = record.run.state = RunState::succeeded;
    end.cause = "claimed";
    record.run.finished_at = record.run.created_at;
    record.events.push_back(end);
  }));
  EXPECT_TRUE(all(*other).empty());
  EXPECT_EQ(get_of(*other, other->store().load(sound)), sound.size());
}

TEST_P(StoreTest, a_key_that_is_taken_elsewhere_is_a_conflict) {
  define("a");
  submit("a", [](NewRun& run) { run.key = "k"; });
  const auto other = GetParam().make();
  define_in(*other, "a");
  NewRun twin = fresh("a");
  twin.key = "k";
  get_of(*other, other->store().enqueue({twin}));
  const auto refused = other->run(other->store().load(records(world())));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::conflict);
  EXPECT_NE(refused.error().what().find(twin.id), std::string::npos) << refused.error().what();
}

TEST_P(StoreTest, a_loaded_run_queues_behind_an_existing_session) {
  define("a");
  const std::string first = submit("a", [](NewRun& run) { run.session = "s"; });
  const std::string second = submit("a", [](NewRun& run) { run.session = "s"; });
  const auto other = GetParam().make();
  define_in(*other, "a");
  NewRun head = fresh("a");
  head.session = "s";
  get_of(*other, other->store().enqueue({head}));
  move(world(), *other);
  expect_sound(*other);
  const NodeNumber node = get_of(*other, other->store().enrol("test"));
  for (const std::string& expected : {head.id, first, second}) {
    const auto claims = get_of(*other, other->store().claim(node, "a", 9));
    ASSERT_EQ(claims.size(), 1U);
    EXPECT_EQ(claims[0].id, expected);
    Settlement end;
    end.attempt = claims[0].attempt_key();
    end.settle = Settle::succeeded;
    get_of(*other, other->store().settle(node, {end}));
  }
}

}  // namespace
}  // namespace stint::store
