/// One run in the foreground: permits, attempts, back-off, one budget over all of it, and one end. What happens is told
/// as events. Until runs live in a store, a run lives in this process.
///
/// The budget's clock starts with the first attempt; waits, back-offs and further attempts all draw on it. The caller's
/// deadline covers the first wait for permits, too. Own thread only.
#pragma once

#include "domain/after_attempt.hpp"
#include "domain/ambient.hpp"
#include "driver/process_attempt.hpp"
#include "limit/host_limits.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stint::engine {

struct RunPlan {
  std::string id;     ///< 12 letters and digits
  std::string label;  ///< the agent's name, for listings
  std::string driver;
  driver::Attempt attempt;
  std::vector<limit::HostRequest> limits;
  std::vector<std::string> marks;  ///< runs that this process is a part of
  domain::BudgetSpec budget;
  domain::RetrySpec retry;
  std::optional<domain::OnCrash> on_crash;
  Duration idle_timeout = std::chrono::minutes(15);
  Duration grace = std::chrono::seconds(5);
  Deadline deadline;     ///< the caller's
  bool may_wait = true;  ///< for the first permits
  std::string directory;
  bool use_cgroup = true;
  std::uint64_t memory_bytes_max = 0;
  std::string homes;  ///< folder with a home for each permit of `home_limit`; empty: the user's home
  std::string home_limit;
};

/// What a watcher sees, in order.
struct RunEvent {
  enum class Kind : std::uint8_t { waiting, started, progress, attempt_ended, backing_off, ended };
  Kind kind = Kind::progress;
  std::uint32_t attempt = 0;
  const limit::WaitReason* reason = nullptr;      ///< waiting
  const driver::Progress* progress = nullptr;     ///< progress
  const driver::ProcessReport* report = nullptr;  ///< attempt_ended
  Duration wait{};                                ///< backing_off
  std::string text;                               ///< why
};

struct RunResult {
  domain::RunEnd end = domain::RunEnd::failed;
  bool refused = false;  ///< no permit, and it was not to wait
  std::string text;      ///< the answer
  std::string message;   ///< why it did not succeed
  Usage usage;           ///< of all attempts
  std::uint32_t attempts = 0;
  std::vector<Denial> denials;
  Duration elapsed{};
};

class ForegroundRun {
 public:
  using Listener = std::function<void(const RunEvent&)>;
  /// Limits and wardens are the process's: all its runs share them.
  ForegroundRun(Reactor& reactor, const domain::Ambient& ambient, limit::HostLimits& limits, driver::Wardens& wardens,
                RunPlan plan, Listener listener);

  /// Once.
  Task<RunResult> run();
  /// Ends the run as cancelled; called again it hurries.
  void cancel(std::string why);

  /// For a progress line.
  [[nodiscard]] Usage usage() const noexcept;
  [[nodiscard]] Duration elapsed() const { return reactor_.now() - started_; }
  [[nodiscard]] Deadline deadline() const noexcept { return deadline_; }
  [[nodiscard]] Duration time_left() const { return deadline_.remaining(reactor_.now()); }

 private:
  Task<RunResult> carry();
  Task<Result<driver::ProcessReport>> attempt_once();
  Result<std::vector<std::string>> home_environment(std::uint32_t slot) const;
  Task<> end_at_deadline();
  Task<> sleep(Duration wait);
  void hear(const driver::Progress& progress);
  void tell(RunEvent event) const;
  RunResult finish(domain::RunEnd end, std::string message);
  void start_clock();

  Reactor& reactor_;
  const domain::Ambient& ambient_;
  RunPlan plan_;
  Listener listener_;
  limit::HostLimits& limits_;
  driver::Wardens& wardens_;
  Scope* waiting_ = nullptr;  // a wait that a cancel ends at once
  driver::ProcessAttempt* attempt_ = nullptr;
  std::optional<std::string> cancelled_;
  std::uint32_t attempts_ = 0;  // made
  std::uint32_t counted_ = 0;   // of the budget's
  Usage spent_;                 // by earlier attempts
  Usage current_;               // by this one, as far as it said
  TimePoint started_{};
  Deadline deadline_;  // the sooner of the caller's and the budget's
};

}  // namespace stint::engine
