/// The interface of a fleet for the API, the commands and the tests. Two implementations: the store, with or without an
/// engine in this process (local_fleet.hpp), and a daemon over HTTP (remote_fleet.hpp). Own thread only.
#pragma once

#include "engine/search.hpp"
#include "engine/views.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stint::agent {
struct Problem;
}
namespace stint::engine {  // reports.hpp
struct AgentDay;
struct AgentDetail;
struct CostQuery;
struct CostReport;
}  // namespace stint::engine

namespace stint::fleet {

// The value types are the engine's, because wire/, which is below this folder, turns them into JSON.
using engine::AgentView;
using engine::BatchAnswer;
using engine::BatchRequest;
using engine::DrainRequest;
using engine::FleetHealth;
using engine::FleetStatus;
using engine::is_at_rest;
using engine::LimitView;
using engine::Phase;
using engine::Receipt;
using engine::RunPage;
using engine::RunView;
using engine::ScaleRequest;
using engine::Search;
using engine::Submission;
using engine::Submitted;
using engine::Timeline;
using engine::WhyView;

class Fleet {
 public:
  Fleet() = default;
  virtual ~Fleet() = default;
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// One result per submission, in order. `invalid` names what is wrong; `full` and `closed` carry Retry-After.
  virtual Task<Result<std::vector<Result<Submitted>>>> submit(std::vector<Submission> submissions) = 0;
  /// By id or unique prefix; none: there is no such run.
  virtual Task<Result<std::optional<RunView>>> find(std::string id) = 0;
  virtual Task<Result<std::vector<RunView>>> list(store::Filter filter) = 0;
  /// A page of the runs that match, newest first. Bounded cost, however few match (engine/search.hpp).
  virtual Task<Result<RunPage>> search(Search search) = 0;
  virtual Task<Result<std::vector<store::Event>>> events(std::string id, std::int64_t after, std::uint32_t most) = 0;
  virtual Task<Result<store::FeedPage>> feed(std::string cursor, std::uint32_t most) = 0;
  virtual Task<Result<store::Output>> output(std::string id) = 0;
  virtual Task<Result<WhyView>> why(std::string id) = 0;
  virtual Task<Result<Timeline>> timeline(std::string id) = 0;
  /// Waits until the run (any run if `id` is empty) may have changed since `seen`, at most `most`. Returns the `seen`
  /// of the next call. May return without a change.
  virtual Task<std::uint64_t> changed(std::string id, std::uint64_t seen, Duration most) = 0;
  /// Waits until the run has ended, or waits for a person. `unavailable`: this daemon exits first; another node
  /// continues the run. Returns a pointer, because a view is large and an answer passes through several frames.
  virtual Task<Result<std::unique_ptr<RunView>>> wait(std::string id);

  /// Returns when the run's work is proven gone.
  virtual Task<Result<Receipt>> cancel(std::string id) = 0;
  /// A new run with the same submission.
  virtual Task<Result<Submitted>> retry(std::string id) = 0;
  virtual Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) = 0;
  /// Lets a parked run go on.
  virtual Task<Result<>> answer(std::string id) = 0;

  /// Begins an action on all runs that match now, or counts them. `conflict`: the idempotency key belongs to a batch
  /// that was asked for otherwise.
  virtual Task<Result<BatchAnswer>> begin_batch(BatchRequest request) = 0;
  virtual Task<Result<std::optional<store::Batch>>> batch(std::string id) = 0;
  /// Newest first, without their failures; only those older than `before`, if that is not 0.
  virtual Task<Result<std::vector<store::Batch>>> batches(store::BatchNumber before, std::uint32_t most) = 0;
  /// None: there is no such batch.
  virtual Task<Result<std::optional<store::Batch>>> stop_batch(std::string id) = 0;
  /// Waits for the end of a batch, and carries it if no daemon does. Calls `progress` now and then.
  virtual Task<Result<store::Batch>> follow_batch(std::string id, std::function<void(const store::Batch&)> progress);

  virtual Task<Result<std::vector<AgentView>>> agents() = 0;
  /// What is wrong with agent files, as far as this process reads them.
  [[nodiscard]] virtual std::vector<agent::Problem> agent_problems() const;
  /// None: there is no such agent.
  virtual Task<Result<std::optional<engine::AgentDetail>>> agent(std::string name) = 0;
  virtual Task<Result<engine::CostReport>> cost(engine::CostQuery query) = 0;
  virtual Task<Result<store::Series>> series(store::SeriesQuery query) = 0;
  virtual Task<Result<std::vector<LimitView>>> limits() = 0;
  virtual Task<Result<>> resize_limit(std::string name, std::uint32_t capacity) = 0;
  virtual Task<Result<>> pause(std::string limit, std::optional<Duration> length) = 0;
  virtual Task<Result<std::uint64_t>> resume(std::string limit) = 0;

  virtual Task<Result<FleetStatus>> status() = 0;
  /// Health of the daemon's pool, with the store's queue.
  virtual Task<Result<FleetHealth>> health() = 0;
  [[nodiscard]] virtual Phase phase() const = 0;
  /// Why a serving daemon can't take runs now; empty: it can. Answers from memory.
  [[nodiscard]] virtual std::string why_unready() const { return {}; }
  virtual Task<Result<FleetHealth>> scale(ScaleRequest scale) = 0;
  virtual Task<Result<>> drain(DrainRequest drain) = 0;
};

}  // namespace stint::fleet
