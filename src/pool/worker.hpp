/// What a worker does with one run: the line from the claim to the store. Read worker.cpp first.
///
/// The run's permits are given back when its work is proven gone; then the store is told what became of it, again and
/// again until it answers. Requests to stop the run go through `Carried`. One executor.
#pragma once

#include "domain/driver.hpp"
#include "domain/log.hpp"
#include "domain/system.hpp"
#include "domain/verdict.hpp"
#include "events/changes.hpp"
#include "pool/call_limits.hpp"
#include "pool/carried.hpp"
#include "pool/conversation.hpp"
#include "pool/run_codec.hpp"
#include "pool/settler.hpp"
#include "stint/retry_tokens.hpp"
#include "stint/worker_pool.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace stint::pool {

/// A run on its way to a worker.
struct Assignment {
  store::Claim claim;
  std::string account;        ///< the limit that is paused with a rate limit; empty: none
  domain::BudgetSpec budget;  ///< of the agent, with all defaults
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  bool reports_use = false;                      ///< also if no budget of its own bounds it: the day has one
  std::unique_ptr<domain::HeldPermits> permits;  ///< null: none needed
  std::unique_ptr<Carried> carried;
};

struct WorkerCounts {
  std::map<domain::RunState, std::uint64_t> settled;
  std::uint64_t stale = 0;           ///< settlements rejected because their fence was stale
  std::uint64_t unrecorded = 0;      ///< ended, but not recorded before the process left
  std::uint64_t notes_left_out = 0;  ///< of tools and the like, beyond what a run may leave
};

class Worker {
 public:
  struct Parts {
    store::Store& store;
    domain::Driver& driver;
    domain::AttemptPlanner* planner;  ///< null: the driver needs no AttemptSpec
    const RunCodec& run_codec;
    const domain::System& system;
    Settler& settler;
    StoreHealth& health;
    events::Changes& changes;
    CallLimits& call_limits;
    domain::Log& log;
  };
  explicit Worker(Parts parts) : parts_(parts), conversations_(parts.store, parts.health, parts.run_codec) {}

  /// From here on the run is one of this node's. To be put into an assignment.
  [[nodiscard]] std::unique_ptr<Carried> take(store::NodeNumber owner, const store::Claim& claim);
  /// One run, from its claim to its end or its next wait.
  Task<Result<>> carry(std::unique_ptr<Assignment> assignment, JobContext& job);

  [[nodiscard]] const std::map<CarriedRuns::Key, Carried*>& carried() const noexcept { return carried_.all(); }
  /// Its newest attempt.
  [[nodiscard]] Carried* find(std::string_view id) const { return carried_.find(id); }
  [[nodiscard]] bool carries(const store::Claim& claim) const {
    return carried_.all().contains({claim.id, claim.fence});
  }
  /// Notified when a run was taken or let go, or its work is over.
  [[nodiscard]] Notification& moved() noexcept { return carried_.moved(); }
  [[nodiscard]] const WorkerCounts& counts() const noexcept { return counts_; }

 private:
  using Report = std::unique_ptr<domain::WorkReport>;
  using Order = std::unique_ptr<domain::WorkOrder>;
  // The steps before the work: each returns why the attempt does not begin, or null.
  Task<Report> attempt(Assignment& assignment, Carried& carried, JobContext& job);
  Task<Report> prepare(Assignment& assignment, Carried& carried, Order& order);
  Result<Order> order_of(Assignment& assignment, Carried& carried) const;
  Result<> entrust_permits(Assignment& assignment, const Carried& carried, domain::WorkOrder& order) const;
  Result<> plan(domain::WorkOrder& order) const;
  Task<Report> make_resumable(const Assignment& assignment, Carried& carried, domain::WorkOrder& order,
                              Recorder& recorder);
  // The work.
  Task<Report> work(Assignment& assignment, Carried& carried, Order order, JobContext& job);
  Task<Result<Report>> run_work(const Assignment& assignment, Carried& carried, domain::Work& work, Recorder& recorder,
                                Notification& used);
  Result<std::unique_ptr<domain::Work>> begin(Order order, domain::WorkContext& context) const;
  Task<> end_at(Carried& carried, TimePoint deadline);
  // The steps after it.
  void release_permits(Assignment& assignment, Carried& carried, const domain::WorkReport& report);
  [[nodiscard]] domain::Verdict judge(const Assignment& assignment, const Carried& carried,
                                      const domain::WorkReport& report);
  Task<Result<>> settle(const Assignment& assignment, Carried& carried, domain::WorkReport& report);
  Task<bool> mark_effects(const Assignment& assignment, Carried& carried, const domain::WorkReport& report,
                          const domain::Verdict& verdict, store::Settlement& settlement);
  Task<bool> keep_conversation(Carried& carried, const domain::WorkReport& report, const std::string& conversation);
  void count(std::optional<domain::RunState> state);
  void log_dropped(const Carried& carried, const Recorder& recorder) const;
  void log_begin(const Carried& carried) const;
  void log_end(const Carried& carried, const domain::Verdict& verdict, OutcomeKind outcome,
               std::optional<domain::RunState> state) const;

  Parts parts_;
  ConversationRecord conversations_;
  CarriedRuns carried_;
  std::map<std::string, RetryTokens> retries_;  // by account
  WorkerCounts counts_;
};

}  // namespace stint::pool
