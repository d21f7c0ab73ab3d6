/// The connection of one process to the store: slow at times, without an answer at times, cut off, or frozen with its
/// process. A call whose answer is lost may or may not have been done, at random. Calls of an owner are also refused
/// for good: some at random, and always those whose text the store can't store (kPoison).
#pragma once

#include "stint/combinators.hpp"
#include "stint/notification.hpp"
#include "store/series.hpp"
#include "store/snapshot.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace stint::simulation {

struct Weather {
  double refused = 0;     ///< share of calls that never reach the store
  double unanswered = 0;  ///< share of calls that are done, and whose answer is lost
  double rejected = 0;    ///< share of an owner's calls that are refused for good; nothing is done
  double garbled = 0;     ///< share of an owner's calls that are done, and answered with a final failure
  double slow = 0;        ///< share of calls that take up to `slow_most`
  Duration slow_most = std::chrono::seconds(2);
};

/// What currently blocks the calls of a process.
struct Line {
  bool dead = false, frozen = false, cut = false;
  bool starved = false;  ///< out of descriptors: nothing can be opened, and nothing started
  Weather weather;
  Notification changed;
};

/// Text that the store always refuses for good.
inline constexpr std::string_view kPoison = "poison";

class ShakyStore final : public store::Store {
 public:
  using AttemptKey = store::AttemptKey;
  using NodeNumber = store::NodeNumber;
  using RunNumber = store::RunNumber;

  /// Known defects, which the simulation must find.
  struct Defects {
    bool lies = false;         ///< reports a lost answer as a call that was not done
    bool hides_turns = false;  ///< does not report that a heavy request would take a turn
    bool hides_runs = false;   ///< does not report how many runs a node owns
  };
  ShakyStore(store::Store& behind, Line& line, std::mt19937_64& random, Defects defects)
      : behind_(behind), line_(line), random_(random), defects_(defects) {}

  Task<Result<>> define(std::vector<store::AgentEntry> agents) override {
    return pass(behind_.define(std::move(agents)));
  }
  Task<Result<>> resize(std::string limit, std::optional<std::uint32_t> capacity) override {
    return pass(behind_.resize(std::move(limit), capacity));
  }
  Task<Result<>> configure(std::map<std::string, std::uint32_t> capacities, std::vector<std::string> agents) override {
    return pass(behind_.configure(std::move(capacities), std::move(agents)));
  }
  Task<Result<>> pause(std::string limit, std::optional<Duration> length) override {
    return pass(behind_.pause(std::move(limit), length));
  }
  Task<Result<std::uint64_t>> resume(std::string limit) override { return pass(behind_.resume(std::move(limit))); }
  Task<Result<std::vector<store::LimitState>>> limits(std::uint32_t listed = 0) override {
    return pass(behind_.limits(listed));
  }
  Task<Result<NodeNumber>> enrol(std::string label, store::NodeKind kind = store::NodeKind::any) override {
    return pass(behind_.enrol(std::move(label), kind));
  }
  Task<Result<store::Beat>> beat(NodeNumber node) override { return pass(behind_.beat(node)); }
  Task<Result<>> drain(NodeNumber node) override { return pass(behind_.drain(node)); }
  Task<Result<>> leave(NodeNumber node) override { return pass(behind_.leave(node)); }
  Task<Result<std::vector<Result<store::Accepted>>>> enqueue(std::vector<store::NewRun> runs) override {
    return pass(behind_.enqueue(std::move(runs)));
  }
  Task<Result<std::vector<std::pair<std::string, domain::RunState>>>> cancel(std::string id) override {
    return pass(behind_.cancel(std::move(id)));
  }
  Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) override {
    return pass(behind_.resolve(std::move(id), how));
  }
  Task<Result<>> answer(std::string id) override { return pass(behind_.answer(std::move(id))); }
  Task<Result<std::vector<store::Ready>>> ready(std::uint32_t most) override {
    STINT_CO_TRY(std::vector<store::Ready> ready, co_await pass(behind_.ready(most)));
    for (store::Ready& each : ready) each.takes_turn = each.takes_turn && !defects_.hides_turns;
    co_return ready;
  }
  Task<Result<std::vector<store::Claim>>> claim(NodeNumber node, std::string agent, std::uint32_t most,
                                                std::string only, std::string waited) override {
    return pass(behind_.claim(node, std::move(agent), most, std::move(only), std::move(waited)), Final::may);
  }
  Task<Result<std::vector<store::Claim>>> owned(NodeNumber node) override {
    return pass(behind_.owned(node), Final::may);
  }
  Task<Result<std::vector<std::optional<domain::RunState>>>> settle(
      NodeNumber node, std::vector<store::Settlement> settlements) override {
    const bool poisoned = std::ranges::any_of(
        settlements, [](const store::Settlement& each) { return is_poison(each.result) || is_poison(each.error); });
    return pass(behind_.settle(node, std::move(settlements)), poisoned ? Final::must : Final::may);
  }
  Task<Result<bool>> mark(NodeNumber node, AttemptKey attempt, bool unsafe) override {
    return pass(behind_.mark(node, attempt, unsafe), Final::may);
  }
  Task<Result<bool>> note(NodeNumber node, AttemptKey attempt, std::string cause, std::string data) override {
    const Final final = is_poison(data) ? Final::must : Final::may;
    return pass(behind_.note(node, attempt, std::move(cause), std::move(data)), final);
  }
  Task<Result<bool>> append_output(NodeNumber node, AttemptKey attempt, std::string text) override {
    const Final final = is_poison(text) ? Final::must : Final::may;
    return pass(behind_.append_output(node, attempt, std::move(text)), final);
  }
  Task<Result<bool>> put_message(NodeNumber node, AttemptKey attempt, store::Message message) override {
    const Final final = is_poison(message.body) ? Final::must : Final::may;
    return pass(behind_.put_message(node, attempt, std::move(message)), final);
  }
  Task<Result<std::vector<std::string>>> messages(std::string id, std::uint32_t from, std::size_t bytes_max) override {
    return pass(behind_.messages(std::move(id), from, bytes_max));
  }
  Task<Result<bool>> provider_answered(NodeNumber node, AttemptKey attempt) override {
    return pass(behind_.provider_answered(node, attempt), Final::may);
  }
  Task<Result<std::optional<std::vector<store::FamilyUse>>>> report(NodeNumber node, AttemptKey attempt,
                                                                    store::Use so_far) override {
    return pass(behind_.report(node, attempt, so_far));
  }
  Task<Result<store::Ticked>> tick() override { return pass(behind_.tick()); }
  Task<Result<std::uint64_t>> wait(std::uint64_t seen, Duration most) override {
    return pass(behind_.wait(seen, most));
  }
  Task<Result<std::optional<store::Run>>> find(std::string id) override { return pass(behind_.find(std::move(id))); }
  Task<Result<std::vector<store::Run>>> list(store::Filter filter) override {
    return pass(behind_.list(std::move(filter)));
  }
  Task<Result<store::Matches>> match(store::Filter filter) override { return pass(behind_.match(std::move(filter))); }
  Task<Result<store::Accepted>> begin_batch(store::NewBatch batch) override {
    return pass(behind_.begin_batch(std::move(batch)));
  }
  Task<Result<std::optional<store::Batch>>> batch(std::string id) override {
    return pass(behind_.batch(std::move(id)));
  }
  Task<Result<std::vector<store::Batch>>> batches(store::BatchNumber before, std::uint32_t most) override {
    return pass(behind_.batches(before, most));
  }
  Task<Result<std::optional<store::BatchClaim>>> claim_batch(NodeNumber node) override {
    return pass(behind_.claim_batch(node));
  }
  Task<Result<std::optional<store::BatchClaim>>> advance_batch(store::BatchClaim claim,
                                                               store::BatchStep step) override {
    return pass(behind_.advance_batch(std::move(claim), std::move(step)));
  }
  Task<Result<>> release_batch(store::BatchClaim claim) override {
    return pass(behind_.release_batch(std::move(claim)));
  }
  Task<Result<std::optional<store::Batch>>> stop_batch(std::string id) override {
    return pass(behind_.stop_batch(std::move(id)));
  }
  Task<Result<std::vector<store::Run>>> with_key(std::string agent, std::string key) override {
    return pass(behind_.with_key(std::move(agent), std::move(key)));
  }
  Task<Result<std::vector<store::FamilyUse>>> used(std::vector<std::string> heads) override {
    return pass(behind_.used(std::move(heads)));
  }
  Task<Result<std::vector<store::Event>>> events(std::string id, std::int64_t after, std::uint32_t most) override {
    return pass(behind_.events(std::move(id), after, most));
  }
  Task<Result<store::FeedPage>> feed(std::string cursor, std::uint32_t most) override {
    return pass(behind_.feed(std::move(cursor), most));
  }
  Task<Result<std::vector<store::Why>>> why(std::string id) override { return pass(behind_.why(std::move(id))); }
  Task<Result<store::Output>> output(std::string id) override { return pass(behind_.output(std::move(id))); }
  Task<Result<std::vector<store::NodeState>>> nodes() override {
    STINT_CO_TRY(std::vector<store::NodeState> nodes, co_await pass(behind_.nodes()));
    for (store::NodeState& each : nodes) each.runs = defects_.hides_runs ? 0 : each.runs;
    co_return nodes;
  }
  Task<Result<std::vector<store::Spent>>> spent(WallTime since, store::SpentBy by) override {
    return pass(behind_.spent(since, by));
  }
  Task<Result<std::vector<store::EndedRun>>> ended(std::string agent, Duration within, std::uint32_t most) override {
    return pass(behind_.ended(std::move(agent), within, most));
  }
  Task<Result<Duration>> sample(NodeNumber node, store::Sample sample) override {
    return pass(behind_.sample(node, sample));
  }
  Task<Result<store::Series>> series(store::SeriesQuery query) override { return pass(behind_.series(query)); }
  Task<Result<store::Stats>> stats() override { return pass(behind_.stats()); }
  Task<Result<store::Snapshot>> snapshot(std::uint32_t listed, std::uint32_t text_bytes_max) override {
    return pass(behind_.snapshot(listed, text_bytes_max));
  }
  Task<Result<>> announce(store::NodeNumber node, std::string cause, std::string data) override {
    return pass(behind_.announce(node, std::move(cause), std::move(data)));
  }
  Task<Result<std::vector<store::QueueState>>> queues() override { return pass(behind_.queues()); }
  Task<Result<std::uint64_t>> prune(Duration older_than, std::uint32_t most) override {
    return pass(behind_.prune(older_than, most));
  }
  Task<Result<std::uint64_t>> prune_if_due(Duration keep, Duration every, std::uint32_t most) override {
    return pass(behind_.prune_if_due(keep, every, most));
  }
  Task<Result<std::vector<store::AgentEntry>>> agents() override { return pass(behind_.agents()); }
  Task<Result<std::vector<store::RunRecord>>> dump(RunNumber after, std::uint32_t most) override {
    return pass(behind_.dump(after, most));
  }
  Task<Result<std::uint64_t>> load(std::vector<store::RunRecord> records) override {
    return pass(behind_.load(std::move(records)));
  }
  Task<Result<std::vector<std::string>>> check() override { return pass(behind_.check()); }
  [[nodiscard]] store::Schema schema() const override { return behind_.schema(); }

 private:
  /// Whether a call may be refused for good.
  enum class Final : std::uint8_t { never, may, must };

  static bool is_poison(std::string_view text) { return text.contains(kPoison); }
  bool happens(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }
  Duration up_to(Duration most) {
    return Duration(std::uniform_int_distribution<Duration::rep>(0, most.count())(random_));
  }
  Task<> come_through() {
    while (line_.dead || line_.frozen) co_await line_.changed.wait(line_.changed.count());
  }

  template <class T>
  Task<Result<T>> pass(Task<Result<T>> call, Final final = Final::never) {
    co_await come_through();
    const bool slow = happens(line_.weather.slow);
    co_await sleep_for(up_to(slow ? line_.weather.slow_most : std::chrono::milliseconds(3)));
    co_await come_through();
    if (line_.cut || happens(line_.starved ? 0.5 : line_.weather.refused)) {
      co_await sleep_for(up_to(std::chrono::seconds(1)));
      co_return fail(Error(Errc::unavailable, Retry::safe, "the store can't be reached"));
    }
    if (final == Final::must || (final == Final::may && happens(line_.weather.rejected))) {
      co_return fail(Errc::failed, "the store refuses it for good");
    }
    Result<T> answer = co_await std::move(call);
    if (happens(line_.weather.slow)) co_await sleep_for(up_to(line_.weather.slow_most));
    co_await come_through();
    if (line_.cut || happens(line_.weather.unanswered)) {
      co_return fail(
          Error(Errc::unavailable, defects_.lies ? Retry::safe : Retry::unknown, "the store's answer was lost"));
    }
    if (final == Final::may && happens(line_.weather.garbled)) {
      co_return fail(Errc::failed, "the store's answer can't be read");
    }
    co_return answer;
  }

  store::Store& behind_;
  Line& line_;
  std::mt19937_64& random_;
  const Defects defects_;
};

}  // namespace stint::simulation
