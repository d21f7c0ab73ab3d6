/// What a worker does with one run: the line from the claim to the store. Read worker.cpp first.
///
/// The run's permits are given back when its work is proven gone; then the store is told what became of it, again and
/// again until it answers. Whoever wants the run to end says so through `Carried`; the work then ends in its own way,
/// and nothing is left behind. One executor.
#pragma once

#include "domain/ambient.hpp"
#include "domain/driver.hpp"
#include "domain/log.hpp"
#include "domain/verdict.hpp"
#include "events/changes.hpp"
#include "pool/scribe.hpp"
#include "pool/settler.hpp"
#include "stint/retry_tokens.hpp"
#include "stint/worker_pool.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace stint::pool {

class Recorder;
class Worker;

/// A run that this process has: from the claim until the store has answered what became of it.
class Carried {
 public:
  enum class Stop : std::uint8_t { none, cancelled, expired, handed_back, fenced };

  Carried(Worker& worker, store::WorkerNumber by, const store::Claim& claim);
  ~Carried();
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;

  /// Begins to end it; again: hurries. `fenced`: others have it, or will: nothing it says counts.
  void stop(Stop why, std::string text);
  [[nodiscard]] Stop stopped() const noexcept { return stop_; }
  /// Nothing of its work is alive, and its permits are free: it only has to be recorded.
  [[nodiscard]] bool is_work_over() const noexcept { return work_over_; }
  [[nodiscard]] bool is_ending() const { return work_ != nullptr && work_->is_ending(); }
  /// What its work waits for before it begins, while it ends, or of the network, for people; empty: it is at work.
  [[nodiscard]] std::string waits_for() const { return work_ == nullptr ? std::string() : work_->waits_for(); }

  const std::string id, agent;
  const store::WorkerNumber owner;
  const store::RunNumber run;
  const std::int64_t fence;
  const std::uint32_t attempt;
  Usage usage;         ///< of all attempts, as far as is known
  std::string worker;  ///< of the pool; empty: it waits for one

 private:
  friend class Worker;
  Worker& worker_;
  Stop stop_ = Stop::none;
  std::string stop_text_;
  std::unique_ptr<domain::RunMemo> before_;  // what earlier attempts left; null: there were none
  domain::Work* work_ = nullptr;
  Recorder* recorder_ = nullptr;
  bool work_over_ = false;
  std::string trace_;
  std::vector<domain::RunInput::BudgetAbove> budgets_;  // its own as well, if tokens or money are bounded
  bool resumable_ = false;                              // by others, from what the store has
  bool unconfirmed_ = false;                            // the conversation to go on with: it may never have begun
  std::string error_before_;                            // of the attempt before
  bool unsafe_ = false;                                 // the store was told: if we die now, nobody knows what it did
};

/// A run on its way to a worker.
struct Assignment {
  store::Claim claim;
  std::string account;        ///< the limit that is paused with a rate limit; empty: none
  domain::BudgetSpec budget;  ///< of the agent, with all defaults
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  std::unique_ptr<domain::HeldPermits> permits;  ///< null: none needed
  std::unique_ptr<Carried> carried;
};

struct WorkerCounts {
  std::map<domain::RunState, std::uint64_t> settled;
  std::uint64_t stale = 0;           ///< said too late: others had the run
  std::uint64_t unrecorded = 0;      ///< ended, but the store took no word of it before the process left
  std::uint64_t notes_left_out = 0;  ///< of tools and the like, beyond what a run may leave
};

class Worker {
 public:
  struct Parts {
    store::Store& store;
    domain::Driver& driver;
    const Scribe& scribe;
    const domain::Ambient& ambient;
    Settler& settler;
    StoreHealth& health;
    events::Changes& changes;
    domain::Log& log;
  };
  explicit Worker(Parts parts) : parts_(parts) {}

  /// From here on it is one of ours. To be put into an assignment.
  [[nodiscard]] std::unique_ptr<Carried> take(store::WorkerNumber owner, const store::Claim& claim);
  /// One run, from its claim to its end or its next wait.
  Task<Result<>> carry(std::unique_ptr<Assignment> assignment, JobContext& job);

  /// By id and fence: while the store's answer to the end of one attempt is on its way, the next may be here already.
  /// The id is that of the run itself, as long as it is carried.
  using Key = std::pair<std::string_view, std::int64_t>;
  [[nodiscard]] const std::map<Key, Carried*>& carried() const noexcept { return carried_; }
  /// Its newest attempt.
  [[nodiscard]] Carried* find(std::string_view id) const;
  [[nodiscard]] bool carries(const store::Claim& claim) const { return carried_.contains({claim.id, claim.fence}); }
  /// Rings when one was taken or let go.
  [[nodiscard]] Bell& moved() noexcept { return moved_; }
  [[nodiscard]] const WorkerCounts& counts() const noexcept { return counts_; }

 private:
  friend class Carried;
  using Report = std::unique_ptr<domain::WorkReport>;  // never null
  Task<Result<>> recall(const Assignment& assignment, Carried& carried);
  Task<Report> attempt(Assignment& assignment, Carried& carried, JobContext& job);
  Result<std::unique_ptr<domain::WorkOrder>> order_of(Assignment& assignment, Carried& carried) const;
  Task<Report> work(Assignment& assignment, Carried& carried, std::unique_ptr<domain::WorkOrder> order,
                    JobContext& job);
  Result<std::unique_ptr<domain::Work>> begin(std::unique_ptr<domain::WorkOrder> order,
                                              domain::Work::Listener listener) const;
  static Report stopped_before(const Carried& carried);
  Task<Result<bool>> make_resumable(Carried& carried, domain::WorkOrder& order, Recorder& recorder);
  Task<Result<bool>> mark(Carried& carried, bool unsafe, std::optional<TimePoint> until);
  Task<bool> mark_before_settling(Carried& carried, const Assignment& assignment, const domain::Verdict& verdict,
                                  store::Settlement& settlement);
  Task<> end_at(Carried& carried, TimePoint deadline);
  void watch_budget(Carried& carried, const Usage& usage, const domain::BudgetSpec& budget);
  Task<std::string> why_nothing_is_left(const Carried& carried);
  Task<> watch_family(Carried& carried, Bell& used);
  void end_family(const std::string& head, const std::string& what);
  [[nodiscard]] domain::Verdict judge(const Assignment& assignment, const Carried& carried,
                                      const domain::WorkReport& report);
  Task<Result<>> settle(const Assignment& assignment, Carried& carried, domain::WorkReport& report);
  void log_dropped(const Carried& carried, const Recorder& recorder) const;
  void log_begin(const Carried& carried) const;
  void log_end(const Carried& carried, const domain::Verdict& verdict, OutcomeKind outcome,
               std::optional<domain::RunState> state) const;

  Parts parts_;
  std::map<Key, Carried*> carried_;
  std::map<std::string, RetryTokens> retries_;  // by account
  Bell moved_;
  WorkerCounts counts_;
};

}  // namespace stint::pool
