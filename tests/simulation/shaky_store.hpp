/// A store as one process reaches it: slow at times, without an answer at times, cut off, or frozen with its process.
/// What is done is done by the store behind it; whether it was done before an answer was lost is left to chance.
#pragma once

#include "stint/bell.hpp"
#include "stint/combinators.hpp"
#include "store/store.hpp"

#include <random>

namespace stint::simulation {

struct Weather {
  double refused = 0;     ///< share of calls that never reach the store
  double unanswered = 0;  ///< share of calls that are done, and whose answer is lost
  double slow = 0;        ///< share of calls that take up to `slow_most`
  Duration slow_most = std::chrono::seconds(2);
};

/// Of a process: what keeps its calls from coming through.
struct Line {
  bool dead = false, frozen = false, cut = false;
  Weather weather;
  Bell changed;
};

class ShakyStore final : public store::Store {
 public:
  using WorkerNumber = store::WorkerNumber;
  using RunNumber = store::RunNumber;

  /// `lies`: says of an answer that was lost that nothing was done.
  ShakyStore(store::Store& behind, Line& line, std::mt19937_64& random, bool lies)
      : behind_(behind), line_(line), random_(random), lies_(lies) {}

  Task<Result<>> define(std::vector<store::AgentEntry> agents) override {
    return pass(behind_.define(std::move(agents)));
  }
  Task<Result<>> resize(std::string limit, std::optional<std::uint32_t> capacity) override {
    return pass(behind_.resize(std::move(limit), capacity));
  }
  Task<Result<>> pause(std::string limit, std::optional<WallTime> until) override {
    return pass(behind_.pause(std::move(limit), until));
  }
  Task<Result<std::uint64_t>> resume(std::string limit) override { return pass(behind_.resume(std::move(limit))); }
  Task<Result<std::vector<store::LimitState>>> limits() override { return pass(behind_.limits()); }
  Task<Result<WorkerNumber>> enrol(std::string label) override { return pass(behind_.enrol(std::move(label))); }
  Task<Result<store::Beat>> beat(WorkerNumber worker) override { return pass(behind_.beat(worker)); }
  Task<Result<>> drain(WorkerNumber worker) override { return pass(behind_.drain(worker)); }
  Task<Result<>> leave(WorkerNumber worker) override { return pass(behind_.leave(worker)); }
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
  Task<Result<std::vector<store::Ready>>> ready(std::uint32_t most) override { return pass(behind_.ready(most)); }
  Task<Result<std::vector<store::Claim>>> claim(WorkerNumber worker, std::string agent, std::uint32_t most,
                                                std::string only) override {
    return pass(behind_.claim(worker, std::move(agent), most, std::move(only)));
  }
  Task<Result<std::vector<store::Claim>>> owned(WorkerNumber worker) override { return pass(behind_.owned(worker)); }
  Task<Result<std::vector<std::optional<domain::RunState>>>> settle(
      WorkerNumber worker, std::vector<store::Settlement> settlements) override {
    return pass(behind_.settle(worker, std::move(settlements)));
  }
  Task<Result<bool>> mark(WorkerNumber worker, RunNumber run, std::int64_t fence, bool unsafe) override {
    return pass(behind_.mark(worker, run, fence, unsafe));
  }
  Task<Result<bool>> note(WorkerNumber worker, RunNumber run, std::int64_t fence, std::string cause,
                          std::string data) override {
    return pass(behind_.note(worker, run, fence, std::move(cause), std::move(data)));
  }
  Task<Result<bool>> append_output(WorkerNumber worker, RunNumber run, std::int64_t fence, std::string text) override {
    return pass(behind_.append_output(worker, run, fence, std::move(text)));
  }
  Task<Result<store::Ticked>> tick() override { return pass(behind_.tick()); }
  Task<Result<std::uint64_t>> wait(std::uint64_t seen, Duration most) override {
    return pass(behind_.wait(seen, most));
  }
  Task<Result<std::optional<store::Run>>> find(std::string id) override { return pass(behind_.find(std::move(id))); }
  Task<Result<std::vector<store::Run>>> list(store::Filter filter) override {
    return pass(behind_.list(std::move(filter)));
  }
  Task<Result<std::vector<store::Event>>> events(std::string id, std::int64_t after, std::uint32_t most) override {
    return pass(behind_.events(std::move(id), after, most));
  }
  Task<Result<store::FeedPage>> feed(std::string cursor, std::uint32_t most) override {
    return pass(behind_.feed(std::move(cursor), most));
  }
  Task<Result<std::vector<store::Why>>> why(std::string id) override { return pass(behind_.why(std::move(id))); }
  Task<Result<store::Output>> output(std::string id) override { return pass(behind_.output(std::move(id))); }
  Task<Result<std::vector<store::WorkerState>>> workers() override { return pass(behind_.workers()); }
  Task<Result<std::vector<store::Spent>>> spent(WallTime since) override { return pass(behind_.spent(since)); }
  Task<Result<store::Stats>> stats() override { return pass(behind_.stats()); }
  Task<Result<std::uint64_t>> prune(WallTime before, std::uint32_t most) override {
    return pass(behind_.prune(before, most));
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
  bool happens(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }
  Duration up_to(Duration most) {
    return Duration(std::uniform_int_distribution<Duration::rep>(0, most.count())(random_));
  }
  Task<> come_through() {
    while (line_.dead || line_.frozen) co_await line_.changed.hear(line_.changed.rings());
  }

  template <class T>
  Task<Result<T>> pass(Task<Result<T>> call) {
    co_await come_through();
    const bool slow = happens(line_.weather.slow);
    co_await sleep_for(up_to(slow ? line_.weather.slow_most : std::chrono::milliseconds(3)));
    co_await come_through();
    if (line_.cut || happens(line_.weather.refused)) {
      co_await sleep_for(up_to(std::chrono::seconds(1)));
      co_return fail(Error(Errc::unavailable, Retry::safe, "the store can't be reached"));
    }
    Result<T> answer = co_await std::move(call);
    if (happens(line_.weather.slow)) co_await sleep_for(up_to(line_.weather.slow_most));
    co_await come_through();
    if (line_.cut || happens(line_.weather.unanswered)) {
      co_return fail(Error(Errc::unavailable, lies_ ? Retry::safe : Retry::unknown, "the store's answer was lost"));
    }
    co_return answer;
  }

  store::Store& behind_;
  Line& line_;
  std::mt19937_64& random_;
  const bool lies_;
};

}  // namespace stint::simulation
