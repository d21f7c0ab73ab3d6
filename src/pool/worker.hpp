/// Carries one run from its claim to its settlement in the store. Read worker.cpp first.
///
/// The worker releases the run's permits when its work is proven gone, then settles the attempt with the store and
/// retries until the store answers. Requests to stop a run go through `Carried`. One executor.
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

/// A claimed run with its permits, as dispatch hands it to a worker.
struct Assignment {
  store::Claim claim;
  std::string account;        ///< the limit that a rate limit pauses; empty: none
  domain::BudgetSpec budget;  ///< of the agent, with all defaults applied
  BackoffRange backoff;       ///< between attempts
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  bool reports_use = false;                      ///< also if no budget of its own bounds it: the day has one
  std::unique_ptr<domain::HeldPermits> permits;  ///< null: none needed
  std::vector<std::string> limits;               ///< of the store, of which the claim holds permits
  std::unique_ptr<Carried> carried;
};

struct WorkerCounts {
  std::map<domain::RunState, std::uint64_t> settled;
  std::uint64_t stale = 0;           ///< settlements rejected because their fence was stale
  std::uint64_t unrecorded = 0;      ///< attempts that ended, but were not settled before the process exited
  std::uint64_t notes_left_out = 0;  ///< notes (tools, spans) dropped beyond the bounds of an attempt
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

  /// Registers a claimed run as carried by this node. The result goes into an Assignment.
  [[nodiscard]] std::unique_ptr<Carried> take(store::NodeNumber owner, const store::Claim& claim);
  /// Carries one run from its claim until it has ended, or waits for its next attempt.
  Task<Result<>> carry(std::unique_ptr<Assignment> assignment, JobContext& job);

  [[nodiscard]] const std::map<CarriedRuns::Key, Carried*>& carried() const noexcept { return carried_.all(); }
  /// The newest attempt of the run; null: this node does not carry it.
  [[nodiscard]] Carried* find(std::string_view id) const { return carried_.find(id); }
  [[nodiscard]] bool carries(const store::Claim& claim) const {
    return carried_.all().contains({claim.id, claim.fence});
  }
  /// Notified when a run is taken, when its work is over and when it is settled.
  [[nodiscard]] Notification& moved() noexcept { return carried_.moved(); }
  [[nodiscard]] const WorkerCounts& counts() const noexcept { return counts_; }

 private:
  using Report = std::unique_ptr<domain::WorkReport>;
  using Order = std::unique_ptr<domain::WorkOrder>;
  // The steps before the work: each returns a report if the attempt does not begin, or null.
  Task<Report> attempt(Assignment& assignment, Carried& carried, JobContext& job);
  Task<Report> prepare(Assignment& assignment, Carried& carried, Order& order);
  Result<Order> order_of(Assignment& assignment, Carried& carried) const;
  Result<> assign_permits(Assignment& assignment, const Carried& carried, domain::WorkOrder& order) const;
  Task<Report> plan(const Carried& carried, domain::WorkOrder& order) const;
  Task<Report> make_resumable(const Assignment& assignment, Carried& carried, domain::WorkOrder& order,
                              Recorder& recorder);
  // The work itself.
  Task<Report> work(Assignment& assignment, Carried& carried, Order order, JobContext& job);
  Task<Result<Report>> run_work(const Assignment& assignment, Carried& carried, domain::Work& work, Recorder& recorder,
                                Notification& used);
  Result<std::unique_ptr<domain::Work>> begin(Order order, domain::WorkContext& context) const;
  Task<> end_at(Carried& carried, TimePoint deadline);
  // The steps after the work.
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
