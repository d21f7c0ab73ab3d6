/// One attempt by a process: starts what a dialect says under a warden, feeds it, reads it line by line, watches that
/// it lives, ends it when asked, and says what it came to. It is over, and its permits may be released, only when
/// nothing of it is alive.
///
/// Own thread only. Everything is bounded: lines, what is kept of the output, the wait for pipes after the end.
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
  std::string cgroup;  ///< to be made; empty: none
  std::uint64_t memory_bytes_max = 0;
  std::vector<int> slots;                            ///< shared with the warden
  std::string directory;                             ///< empty: ours
  std::vector<std::string> environment;              ///< changes on top of ours: `NAME=value`, or `NAME` to unset
  Duration idle_timeout = std::chrono::minutes(15);  ///< without output or CPU time for so long it counts as stalled
  Duration polite = std::chrono::seconds(3);         ///< for the dialect's own way to end, before the first signal
  Duration grace = std::chrono::seconds(5);          ///< between that signal and SIGKILL
  Duration lease = std::chrono::seconds(10);
  Duration killed_max = std::chrono::seconds(30);  ///< for what does not even end by SIGKILL; then it is given up
};

/// What is told while it runs.
struct ProcessEvents {
  std::function<void(const Progress&)> progress;
  std::function<void(std::string_view)> raw_output;  ///< stdout, as it comes
  std::function<void(std::string_view)> raw_errors;  ///< stderr
};

/// An attempt's end, and the receipt of its ending.
struct ProcessReport {
  Outcome outcome;
  std::uint32_t processes_ended = 0;
  Duration ending{};        ///< from the first signal, or the command's own end, until the last process was reaped
  bool tools_used = false;  ///< it began to do something: its effects are not known to be none
  bool output_seen = false;
  bool conversation_unknown = false;  ///< as the dialect has it
  std::string left;                   ///< what could not be ended, for people; empty: nothing is left
};

class ProcessAttempt {
 public:
  ProcessAttempt(Wardens& wardens, Dialect& dialect, ProcessOptions options, ProcessEvents events);
  ~ProcessAttempt();
  ProcessAttempt(const ProcessAttempt&) = delete;
  ProcessAttempt& operator=(const ProcessAttempt&) = delete;

  /// Once. Fails only if nothing was started. If the awaiting chain is stopped, the process is ended all the same, and
  /// the stop goes on when it is gone. Many wait for long: the attempt is let go of as soon as the process has it, and
  /// there is no room for the report (never null) before there is one.
  Task<Result<std::unique_ptr<ProcessReport>>> run(std::unique_ptr<const Invocation> invocation);
  /// Begins to end it, in the dialect's own way first; `kind` is what its outcome becomes, unless it was done before.
  /// Called again it hurries.
  void end(OutcomeKind kind, std::string why);
  /// As domain::Work has it: stdout is not read, so that who writes more than a pipe takes has to wait. That is no
  /// silence of the agent's. What is in the pipe at the end is read all the same.
  void hold(bool held) noexcept;
  [[nodiscard]] bool ending() const noexcept { return why_ended_.has_value(); }
  /// While it is being ended: that it is, and why. While its CLI waits for the network: that it does.
  [[nodiscard]] std::optional<domain::WaitReason> waits_for() const;

 private:
  class Streams;
  struct WhyEnded {
    OutcomeKind kind;
    std::string message;
    bool done_before = false;  // the result had come
    bool unreachable = false;  // as of an outcome
    bool gave_up = false;      // the dialect did: its outcome counts, unless somebody else wants the end as well
  };
  Result<> start(const Invocation& invocation);
  Task<Result<Ended>> attend();
  Task<> finish_off();
  Task<> write(std::string text, bool close);
  Task<> let_go(const Descriptor& from);
  /// `take` is given what comes, and nothing at the end.
  Task<> read(Descriptor& from, void (ProcessAttempt::*take)(std::string_view));
  Task<> watch_life();
  Task<> escalate();
  Task<> see_off();
  void reader_ended() noexcept;
  void take_output(std::string_view bytes);
  void take_errors(std::string_view bytes);
  void take_line(std::string_view line);
  void take_error_line(std::string_view line);
  void heed_dialect();
  void take(std::string_view words);
  void note_life() noexcept { last_life_ = wardens_.reactor().now(); }
  Result<std::unique_ptr<ProcessReport>> report(const Ended& ended);

  Wardens& wardens_;
  Dialect& dialect_;
  std::unique_ptr<ProcessOptions> options_;  // until it is started
  const Duration idle_timeout_, polite_, grace_;
  ProcessEvents events_;
  std::string program_;  // for messages
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<Ward> ward_;
  std::string left_;        // by the ward, when it was over
  Scope* scope_ = nullptr;  // of the helpers, while there is something to help
  std::optional<WhyEnded> why_ended_;
  bool leaving_ = false;  // the result was seen
  Notification drained_;  // both pipes have come to their end
  int open_pipes_ = 2;
  int holds_ = 0;
  Notification let_go_;
  bool over_ = false;      // nothing of it is alive
  std::string line_;       // the part of a line that has come
  bool skipping_ = false;  // a line that is too long, up to its end
  std::string error_tail_;
  std::string error_line_;  // the part of a line of stderr that has come, at most kErrorLineMax
  std::vector<Progress> progress_;
  TimePoint last_life_{};
  bool tools_used_ = false;
  bool output_seen_ = false;
};

}  // namespace stint::driver
