/// A fleet in a process that has opened the store: a daemon with an engine, or a command without one. Answers hold for
/// all processes that share the store.
#pragma once

#include "events/changes.hpp"
#include "fleet/fleet.hpp"
#include "pool/run_codec.hpp"
#include "project/snapshot.hpp"
#include "stint/notification.hpp"

#include <functional>
#include <map>
#include <set>

namespace stint::fleet {

inline constexpr Duration kComeAgain = std::chrono::seconds(2);  // what a refusal that passes tells the caller to wait

class LocalFleet final : public Fleet {
 public:
  struct Parts {
    Executor& executor;
    store::Store& store;
    const pool::RunCodec& run_codec;
    const domain::System& system;
    std::function<const project::AgentRegistry&()> registry;
    engine::Engine* engine = nullptr;        ///< null: other processes carry runs
    domain::Survivors* survivors = nullptr;  ///< null: no process outlives its node
  };
  struct Options {
    std::string version, store;
    std::uint64_t queue_max = 200;
    bool cluster = false;                             ///< limits in the store are counted over several hosts
    std::optional<std::int64_t> cost_micros_per_day;  ///< without an engine, which has its own
    project::CurrentSnapshot snapshot;                ///< for problems of agent files; empty: this process reads none
    /// Limits of this host, which are not in the store. Both functions read files and run in a blocking pool.
    std::function<Task<Result<std::vector<LimitView>>>()> host_limits;
    /// False: the host has no limit with that name.
    std::function<Task<Result<bool>>(std::string name, std::uint32_t capacity)> resize_host_limit;
  };
  static constexpr std::uint32_t kListTextMax = 8 << 10;  // bounds the texts of a page of 1,000 runs to 16 MiB
  LocalFleet(Parts parts, Options options) : parts_(std::move(parts)), options_(std::move(options)) {}

  Task<Result<std::vector<Result<Submitted>>>> submit(std::vector<Submission> submissions) override;
  Task<Result<std::optional<RunView>>> find(std::string id) override;
  Task<Result<std::unique_ptr<RunView>>> wait(std::string id) override;
  Task<Result<std::vector<RunView>>> list(store::Filter filter) override;
  Task<Result<RunPage>> search(Search search) override;
  Task<Result<BatchAnswer>> begin_batch(BatchRequest request) override;
  Task<Result<std::optional<store::Batch>>> batch(std::string id) override;
  Task<Result<std::vector<store::Batch>>> batches(store::BatchNumber before, std::uint32_t most) override;
  Task<Result<std::optional<store::Batch>>> stop_batch(std::string id) override;
  Task<Result<store::Batch>> follow_batch(std::string id, std::function<void(const store::Batch&)> progress) override;
  Task<Result<std::vector<store::Event>>> events(std::string id, std::int64_t after, std::uint32_t most) override;
  Task<Result<store::FeedPage>> feed(std::string cursor, std::uint32_t most) override;
  Task<Result<store::Output>> output(std::string id) override;
  Task<Result<WhyView>> why(std::string id) override;
  Task<Result<Timeline>> timeline(std::string id) override;
  Task<std::uint64_t> changed(std::string id, std::uint64_t seen, Duration most) override;
  Task<Result<Receipt>> cancel(std::string id) override;
  Task<Result<Submitted>> retry(std::string id) override;
  Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) override;
  Task<Result<>> answer(std::string id) override;
  Task<Result<std::vector<AgentView>>> agents() override;
  [[nodiscard]] std::vector<agent::Problem> agent_problems() const override;
  Task<Result<std::optional<engine::AgentDetail>>> agent(std::string name) override;
  Task<Result<engine::CostReport>> cost(engine::CostQuery query) override;
  Task<Result<store::Series>> series(store::SeriesQuery query) override;
  /// The queue and the runs of the whole fleet, and the pool of this process: a sample for the time series.
  Task<Result<store::Sample>> observe();
  Task<Result<std::vector<LimitView>>> limits() override;
  Task<Result<>> resize_limit(std::string name, std::uint32_t capacity) override;
  Task<Result<>> pause(std::string limit, std::optional<Duration> length) override;
  Task<Result<std::uint64_t>> resume(std::string limit) override;
  Task<Result<FleetStatus>> status() override;
  /// The fleet at one moment, with the entries of limits.
  Task<Result<engine::FleetView>> look() { return look(Detail::entries); }
  Task<Result<FleetHealth>> health() override;
  [[nodiscard]] Phase phase() const override;
  [[nodiscard]] std::string why_unready() const override;
  Task<Result<FleetHealth>> scale(ScaleRequest scale) override;
  Task<Result<>> drain(DrainRequest drain) override;

  /// Carries batches for the node of this process until it is cancelled: those that are begun here, and those of nodes
  /// that died.
  Task<> carry_batches(domain::Log& log);

 private:
  using BudgetsAbove = std::vector<domain::RunInput::BudgetAbove>;
  [[nodiscard]] Result<store::NewRun> prepare(Submission&& submission, BudgetsAbove above) const;
  Result<> may_submit() const;
  /// Whether the run will neither begin nor go on in this daemon, because it is draining.
  [[nodiscard]] bool is_leaving(const std::string& run) const;
  Task<Result<>> check_parent_waits(const Submission& submission);
  Task<Result<BudgetsAbove>> bound_by_others(Submission& submission);
  Task<Result<domain::RunInput::BudgetAbove>> shared_budget(const Submission& submission);
  Task<Result<>> bound_by(Submission& submission, const BudgetsAbove& above);
  [[nodiscard]] BudgetsAbove budgets_of(const RunView& parent) const;
  Task<Result<>> place_below(const RunView& before, Submission& submission);
  Task<Result<>> define_missing(const std::vector<store::NewRun>& runs);
  Task<Result<RunView>> must_find(std::string id);
  Task<Result<RunView>> gone(std::string id);
  [[nodiscard]] Result<> can_be_recorded(const std::string& id) const;
  Task<Error> cancel_here(const std::string& id, Error refusal);
  Task<Result<>> end_left(const store::Run& run);
  Task<Result<store::LimitState>> must_know(const std::string& limit);
  Task<Result<>> make_known(const std::string& limit);
  Task<Result<std::optional<std::string>>> find_by_key(const Submission& submission);
  [[nodiscard]] bool is_same(const RunView& known, const Submission& submission) const;
  Task<Result<>> check_same_key(const Submission& submission, const std::string& id);
  Result<Submitted> conclude(Result<store::Accepted> accepted);
  enum class Detail : std::uint8_t { summary, entries };
  Task<Result<engine::FleetView>> look(Detail detail);
  /// `counted`: the limits that the store counts. Adds those of this host and of this process.
  Task<Result<std::vector<LimitView>>> list_limits(Detail detail, std::vector<store::LimitState> counted);
  /// Agents that can't run here: refused, or their file has errors. By name.
  [[nodiscard]] std::vector<engine::RefusedAgent> refused_agents() const;
  /// Adds agent and title to the entries of running runs. `running`: as far as the caller has them.
  static void name_runs(std::vector<domain::LimitEntry>& entries, const std::vector<RunView>& running);
  Task<Result<std::vector<RunView>>> running_runs();
  [[nodiscard]] FleetHealth health_with(std::vector<store::QueueState> queues) const;
  Task<std::vector<std::string>> limits_held_by(const std::string& run);
  Task<Result<>> add_variants(store::Filter& filter);
  Task<Result<engine::Total>> count(store::Filter filter);
  Task<Result<Submitted>> retry_as(std::string id, std::string as);
  // Batches (local_fleet_batch.cpp).
  enum class Acted : std::uint8_t { done, skipped, failed, later };
  struct BatchOutcome {
    Acted acted = Acted::later;
    std::string error;
  };
  Task<Result<std::vector<std::string>>> matching(store::Filter filter);
  Task<Result<std::optional<BatchAnswer>>> known_batch(const BatchRequest& request, std::string id, std::string filter);
  Task<BatchOutcome> act_on(const store::BatchClaim& claim, std::string run);
  [[nodiscard]] BatchOutcome outcome_of(const Error& error) const;
  Task<store::BatchStep> act_on_all(const store::BatchClaim& claim);
  Task<> carry(store::BatchClaim claim);
  Task<> carry_here(store::NodeNumber node, std::string id);
  Task<> keep_alive(store::NodeNumber node);
  [[nodiscard]] bool may_carry() const;
  Task<Result<engine::AgentDay>> look_at_day(std::set<std::string> names);
  Task<Result<>> add_runs(const engine::CostQuery& query, engine::CostReport& report);
  Task<Result<>> list_variants(store::Filter filter, std::vector<store::Run>& runs);
  Task<Result<>> define_variants(const std::vector<store::NewRun>& runs);
  Task<Result<std::optional<store::Run>>> cause_of_pause(const std::string& limit);
  Task<Result<>> name_causes(std::vector<domain::WaitReason>& reasons);
  /// The name of the run's agent in the store: its account may have a lane of its own.
  [[nodiscard]] std::string name_in_store_of(const RunView& view) const;
  [[nodiscard]] engine::TimelineFact fact_of(store::Event event) const;
  void add_reasons_here(const RunView& view, std::vector<domain::WaitReason>& reasons) const;
  void add_reasons_of_attempt(const RunView& view, std::vector<domain::WaitReason>& reasons) const;
  void add_reasons_of_queue(const RunView& view, std::vector<domain::WaitReason>& reasons) const;
  [[nodiscard]] std::optional<std::int64_t> cost_per_day() const;
  [[nodiscard]] RunView view(store::Run run) const;
  void tell(std::string_view id, events::Changes::Kind kind = events::Changes::Kind::any);

  Parts parts_;
  Options options_;
  Notification batch_asked_;
  engine::BatchCounts batch_counts_;
  std::map<std::string, store::AgentEntry> lanes_defined_;  // as this process defined them in the store, by name
};

/// Whether the run is parked on a limit, and goes on when that is resumed.
[[nodiscard]] bool is_parked_on_limit(const store::Why& why) noexcept;
[[nodiscard]] domain::LimitEntry entry_of(store::LimitHolder holder);
[[nodiscard]] domain::LimitEntry entry_of(store::LimitWaiter waiter);

}  // namespace stint::fleet
