// The connection is cut in each statement of a long scenario, at every kind of place: before it was sent, in its
// middle, in the middle of the answer, and after the commit. A call without an answer reports that, is repeated as
// the interface allows, and the final state equals that of a run without cuts.
#include "store/postgres_proxy.hpp"
#include "store/postgres_world.hpp"

#include <algorithm>
#include <sstream>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;
using Where = PostgresProxy::Where;

class Scenario {
 public:
  explicit Scenario(std::optional<PostgresProxy::Cut> cut)
      : cut_(cut),
        proxy_(PostgresWorld::server_folder()),
        store_(world_.run(PostgresStore::open(world_.reactor(), world_.url_through(proxy_.host()), world_.options()))
                   .value()) {}

  std::string play() {
    set_up();
    const NodeNumber node = ask([&] { return store_->enrol("one"); });
    const std::vector<Claim> claims = claim(node, "a", 2);
    if (claims.size() != 2) return "no claims";
    say_things(node, claims[0]);
    settle(node, claims[0], Settle::succeeded, [](Settlement& end) { end.result = "7"; });
    settle(node, claims[1], Settle::park, [&](Settlement& end) {
      end.park_on = "gpu";
      end.park_for = 10s;
    });
    ask([&] { return store_->pause("gpu", 1h); });
    ask([&] { return store_->resume("gpu"); });
    retry_and_cancel(node);
    lose_one(node);
    look();
    ask([&] { return store_->drain(node); });
    for (const Claim& left : ask([&] { return store_->owned(node); })) {
      settle(node, left, Settle::hand_back);
    }
    ask([&] { return store_->leave(node); });
    ask([&] { return store_->prune(90s, 2); });
    return snapshot();
  }
  [[nodiscard]] int cuts() const noexcept { return cuts_; }
  [[nodiscard]] int unknown() const noexcept { return unknown_; }

 private:
  void set_up() {
    AgentEntry one, other;
    one.name = "a";
    one.limits = {{"gpu", 1}, {"own", 1}};
    other.name = "b";
    other.limits = {{"gpu", 2}};
    ask([&] { return store_->define({one, other}); });
    ask([&] { return store_->resize("gpu", 2); });
    ask([&] { return store_->resize("own", 2); });
    std::vector<NewRun> runs(6);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].id = id_of(static_cast<int>(i));
      runs[i].agent = i == 5 ? "b" : "a";
      runs[i].session = i == 2 || i == 3 ? "s" : "";
      runs[i].key = i == 4 ? "k" : "";
      runs[i].input = std::to_string(i);
      runs[i].on_crash = domain::OnCrash::rerun;
    }
    const auto answers = ask([&] { return store_->enqueue(runs); });
    EXPECT_TRUE(std::ranges::all_of(answers, [](const auto& answer) { return answer.has_value(); }));
  }

  void say_things(NodeNumber node, const Claim& claim) {
    EXPECT_TRUE(ask([&] { return store_->beat(node); }).alive);
    EXPECT_TRUE(ask([&] { return store_->note(node, claim.attempt_key(), "said", "1"); }));
    EXPECT_TRUE(ask([&] { return store_->note(node, claim.attempt_key(), "said", "1"); }));
    for (const char* const text : {"first ", "second ", "second "}) {
      EXPECT_TRUE(ask([&] { return store_->append_output(node, claim.attempt_key(), text); }));
    }
    EXPECT_TRUE(ask([&] { return store_->mark(node, claim.attempt_key(), true); }));
    EXPECT_TRUE(ask([&] { return store_->mark(node, claim.attempt_key(), false); }));
  }

  void retry_and_cancel(NodeNumber node) {
    const std::vector<Claim> claims = claim(node, "a", 1);
    if (claims.empty()) return ADD_FAILURE() << "the probe was not given";
    NewRun child;
    child.id = id_of(20);
    child.agent = "b";
    child.parent = claims[0].id;
    child.on_crash = domain::OnCrash::rerun;
    ask([&] { return store_->enqueue({child}); });
    settle(node, claims[0], Settle::retry, [](Settlement& end) { end.retry_after = 30s; });
    ask([&] { return store_->cancel(child.id); });
    world_.advance(10s);
    ask([&] { return store_->beat(node); });
    ask([&] { return store_->tick(); });
  }

  /// Another node dies with an unsafe run; a person resolves it, and another run waits for a person.
  void lose_one(NodeNumber node) {
    const NodeNumber other = ask([&] { return store_->enrol("two"); });
    std::vector<Claim> claims = claim(other, "a", 1);
    if (claims.empty()) return ADD_FAILURE() << "nothing to lose";
    EXPECT_TRUE(ask([&] { return store_->mark(other, claims[0].attempt_key(), true); }));
    for (int i = 0; i < 2; ++i) {
      world_.advance(10s);
      EXPECT_TRUE(ask([&] { return store_->beat(node); }).alive);
    }
    ask([&] { return store_->tick(); });
    EXPECT_FALSE(ask([&] { return store_->beat(other); }).alive);
    ask_once([&] { return store_->resolve(claims[0].id, domain::Resolution::rerun); });
    for (const Claim& again : claim(node, "a", 1)) settle(node, again, Settle::park);
    Filter parked;
    parked.states = {RunState::parked};
    for (const store::Run& run : ask([&] { return store_->list(parked); })) {
      ask_once([&] { return store_->answer(run.id); });
    }
    claim(node, "a", 1);
  }

  void look() {
    ask([&] { return store_->limits(); });
    EXPECT_TRUE(ask([&] { return store_->find(id_of(0)); }));
    ask([&] { return store_->why(id_of(5)); });
    ask([&] { return store_->stats(); });
    ask([&] { return store_->snapshot(1, 0); });
    ask([&] { return store_->feed("", 1000); });
    EXPECT_EQ(ask([&] { return store_->output(id_of(0)); }).head, "first second second ");
  }

  // ---- calls -------------------------------------------------------------------------------------------------------

  template <class Call>
  using Answer = decltype(std::declval<PostgresWorld&>().run(std::declval<Call&>()()));

  template <class Call>
  Answer<Call> try_cut(Call call) {
    if (cut_) proxy_.arm(*cut_);
    Answer<Call> result = world_.run(call());
    if (cut_ && proxy_.disarm()) ++cuts_;
    if (result) return result;
    EXPECT_EQ(result.error(), Errc::unavailable) << result.error().describe();
    EXPECT_EQ(result.error().retry(), Retry::unknown) << result.error().describe();
    ++unknown_;
    return result;
  }
  template <class T>
  T must(Result<T> result) {
    if (!result) ADD_FAILURE() << result.error().describe();
    if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T();
  }
  /// A call that may be repeated without harm.
  template <class Call>
  typename Answer<Call>::value_type ask(Call call) {
    Answer<Call> first = try_cut(call);
    return must(first ? std::move(first) : world_.run(call()));
  }
  /// A call whose repetition is a conflict if it took effect.
  template <class Call>
  void ask_once(Call call) {
    if (try_cut(call)) return;
    const Answer<Call> again = world_.run(call());
    EXPECT_TRUE(again || again.error() == Errc::conflict) << again.error().describe();
  }
  std::vector<Claim> claim(NodeNumber node, const std::string& agent, std::uint32_t most) {
    const std::vector<Claim> before = must(world_.run(store_->owned(node)));
    auto claims = try_cut([&] { return store_->claim(node, agent, most); });
    if (claims) return std::move(*claims);
    std::vector<Claim> owned = must(world_.run(store_->owned(node)));
    std::erase_if(owned,
                  [&](const Claim& each) { return std::ranges::find(before, each.run, &Claim::run) != before.end(); });
    return owned.empty() ? must(world_.run(store_->claim(node, agent, most))) : std::move(owned);
  }
  void settle(NodeNumber node, const Claim& claim, Settle how, const std::function<void(Settlement&)>& change = {}) {
    Settlement end;
    end.attempt = claim.attempt_key();
    end.settle = how;
    if (change) change(end);
    const auto states = try_cut([&] { return store_->settle(node, {end}); });
    if (states) EXPECT_TRUE(states->at(0).has_value());
    if (!states) (void)must(world_.run(store_->settle(node, {end})));  // stale if it took effect
  }

  // ---- final state -------------------------------------------------------------------------------------------------

  /// Everything except numbers and times that a repetition may change.
  std::string snapshot() {
    std::ostringstream out;
    Store& store = world_.store();  // without the proxy
    std::vector<store::Run> runs = must(world_.run(store.list({})));
    std::ranges::sort(runs, {}, &store::Run::id);
    for (const store::Run& each : runs) {
      const store::Run run = *must(world_.run(store.find(each.id)));
      out << run.id << ' ' << run.agent << ' ' << run.session << ' ' << to_string(run.state) << ' '
          << to_string(run.hold) << " attempt " << run.attempt << " lost " << run.lost << " fence " << run.fence
          << " seq " << run.seq << ' ' << run.unsafe << ' ' << run.input << '/' << run.result << " owned "
          << run.node.has_value() << ':';
      for (const Event& event : must(world_.run(store.events(run.id, 0, 1000)))) {
        out << ' ' << event.seq << event.cause << event.fence << event.data;
      }
      out << " [" << must(world_.run(store.output(run.id))).head << "]\n";
    }
    for (const LimitState& limit : must(world_.run(store.limits()))) {
      out << limit.name << ' ' << limit.capacity.value_or(0) << ' ' << limit.units << ' ' << limit.paused << ' '
          << limit.ramp.value_or(0) << '\n';
    }
    std::size_t told = 0;
    for (const Event& event : must(world_.run(store.feed("", 1000))).events) {
      const bool of_node = event.node.has_value();  // a repeated enrol enrols another one
      told += event.run.empty() && !of_node ? 1 : 0;
    }
    out << told << " of limits\n";
    return out.str();
  }
  static std::string id_of(int number) { return "aaaaaaaaaaa" + std::string(1, static_cast<char>('a' + number)); }

  PostgresWorld world_;
  const std::optional<PostgresProxy::Cut> cut_;
  PostgresProxy proxy_;
  std::unique_ptr<PostgresStore> store_;
  int cuts_ = 0, unknown_ = 0;
};

TEST(PostgresCut, wherever_a_statement_is_cut_the_end_is_the_same) {
  if (const std::string reason = PostgresServer::why_not(); !reason.empty()) GTEST_SKIP() << reason;
  if (PostgresWorld::server_folder().empty()) GTEST_SKIP() << "the proxy needs the socket of an own server";
  const std::string whole = Scenario(std::nullopt).play();
  // Few calls have a second and a third statement: those are cut in fewer places.
  std::vector<PostgresProxy::Cut> cuts;
  for (const Where where : {Where::request, Where::answer}) {
    for (const int bytes : {0, 1, 60, -1}) cuts.push_back({0, where, bytes});
    for (const int statement : {1, 2}) cuts.push_back({statement, where, 0});
  }
  for (const PostgresProxy::Cut& cut : cuts) {
    SCOPED_TRACE("statement " + std::to_string(cut.statement) +
                 (cut.where == Where::request ? " request " : " answer ") + std::to_string(cut.bytes));
    Scenario scenario(cut);
    EXPECT_EQ(scenario.play(), whole);
    EXPECT_GT(scenario.cuts(), 0);
    if (cut.statement == 0) EXPECT_GT(scenario.unknown(), 10) << "of " << scenario.cuts() << " cuts";
  }
}

}  // namespace
}  // namespace stint::store
