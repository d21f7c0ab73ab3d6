/// Runs one attempt as a process: starts the dialect's command under a warden, writes its stdin, reads its output line
/// by line, detects a stall, ends it on request, and reports the outcome. The attempt is over, and its permits may be
/// released, only when none of its processes is alive.
///
/// Own thread only. Everything is bounded: lines, kept output, the wait for pipes after the end.
#pragma once

#include "domain/outcome.hpp"
#include "domain/wait_reason.hpp"
#include "driver/dialect.hpp"
#include "driver/ward.hpp"
#include "stint/notification.hpp"
#include "stint/scope.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stint::driver {

struct ProcessOptions {
  std::string run;     ///< the mark
  std::string cgroup;  ///< to create; empty: none
  std::uint64_t memory_bytes_max = 0;
  std::vector<int> slots;                            ///< shared with the warden
  std::string directory;                             ///< empty: ours
  std::vector<std::string> environment;              ///< changes on top of ours: `NAME=value`, or `NAME` to unset
  Duration idle_timeout = std::chrono::minutes(15);  ///< after so long without output or CPU time it is stalled
  Duration polite = std::chrono::seconds(3);         ///< for the dialect's polite end, before the first signal
  Duration grace = std::chrono::seconds(5);          ///< between that signal and SIGKILL
  Duration lease = std::chrono::seconds(10);
  Duration killed_max = std::chrono::seconds(30);  ///< to wait for processes that SIGKILL does not end; then give up
};

/// Callbacks while it runs.
struct ProcessEvents {
  std::function<void(const Progress&)> progress;
  std::function<void(std::string_view)> raw_output;  ///< stdout, as it arrives
  std::function<void(std::string_view)> raw_errors;  ///< stderr
};

/// The outcome of an attempt, and what had to be ended.
struct ProcessReport {
  Outcome outcome;
  std::uint32_t processes_ended = 0;
  Duration ending{};        ///< from the first signal, or the command's own end, until the last process was reaped
  bool tools_used = false;  ///< it began to use tools: it may have had effects
  bool output_seen = false;
  bool conversation_unknown = false;  ///< see Dialect::is_conversation_unknown
  std::string left;                   ///< what could not be ended, for people; empty: nothing is left
};

class ProcessAttempt {
 public:
  ProcessAttempt(Wardens& wardens, Dialect& dialect, ProcessOptions options, ProcessEvents events);
  ~ProcessAttempt();
  ProcessAttempt(const ProcessAttempt&) = delete;
  ProcessAttempt& operator=(const ProcessAttempt&) = delete;

  /// Called once. Fails only if nothing was started. If the awaiting chain is stopped, the process is ended first, and
  /// the stop passes on when it is gone. Thousands of these frames may wait: the invocation is freed when the process
  /// has it, and the report (never null) is allocated only at the end.
  Task<Result<std::unique_ptr<ProcessReport>>> run(std::unique_ptr<const Invocation> invocation);
  /// Begins to end the process, with the dialect's polite end first. `kind` becomes the outcome unless the work was
  /// done before. A second call skips the grace period.
  void end(OutcomeKind kind, std::string why);
  /// Back-pressure, as in domain::Work: while held, stdout is not read, so a process that fills its pipe has to wait.
  /// That time does not count as a stall. What is in the pipe at the end is still read.
  void hold(bool held) noexcept;
  [[nodiscard]] bool ending() const noexcept { return why_ended_.has_value(); }
  /// While its processes are being ended: that, and why. While its CLI waits for the network: that.
  [[nodiscard]] std::optional<domain::WaitReason> waits_for() const;

 private:
  class Streams;
  struct WhyEnded {
    OutcomeKind kind;
    std::string message;
    bool done_before = false;  // the result came before
    bool unreachable = false;  // see Outcome::unreachable
    bool gave_up = false;      // Dialect::gives_up: its outcome counts, unless end() is called as well
  };
  Result<> start(const Invocation& invocation);
  Task<Result<WardenReport>> supervise();
  Task<> end_and_wait();
  Task<> write(std::string text, bool close);
  Task<> wait_unheld(const Descriptor& from);
  /// Calls `take` with each piece, and with empty text at the end.
  Task<> read(Descriptor& from, void (ProcessAttempt::*take)(std::string_view));
  Task<> watch_life();
  Task<> escalate();
  Task<> await_exit();
  void reader_ended() noexcept;
  void take_output(std::string_view bytes);
  void take_errors(std::string_view bytes);
  void take_line(std::string_view line);
  void take_error_line(std::string_view line);
  void end_if_dialect_gives_up();
  void take(std::string_view words);
  void note_life() noexcept { last_life_ = wardens_.reactor().now(); }
  Result<std::unique_ptr<ProcessReport>> report(const WardenReport& ended);

  Wardens& wardens_;
  Dialect& dialect_;
  std::unique_ptr<ProcessOptions> options_;  // until it is started
  const Duration idle_timeout_, polite_, grace_;
  ProcessEvents events_;
  std::string program_;  // for messages
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<Ward> ward_;
  std::string left_;        // processes that the ward could not end
  Scope* scope_ = nullptr;  // of the tasks beside the process, while it runs
  std::optional<WhyEnded> why_ended_;
  bool result_seen_ = false;
  Notification drained_;  // both pipes are at their end
  int open_pipes_ = 2;
  int holds_ = 0;
  Notification unheld_;
  bool over_ = false;      // no process of it is alive
  std::string line_;       // an incomplete line
  bool skipping_ = false;  // to the end of a line that is too long
  std::string error_tail_;
  std::string error_line_;  // an incomplete line of stderr, at most kErrorLineMax
  std::vector<Progress> progress_;
  TimePoint last_life_{};
  bool tools_used_ = false;
  bool output_seen_ = false;
};

}  // namespace stint::driver
