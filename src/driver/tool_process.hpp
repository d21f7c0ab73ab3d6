/// A process of one attempt beside its agent: the command of a tool call, or an MCP server. It runs under a warden with
/// the attempt's mark; run() returns when nothing of it is alive. Own thread only; what it keeps is bounded.
#pragma once

#include "driver/ward.hpp"
#include "stint/notification.hpp"
#include "stint/scope.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::driver {

struct ToolProcessOptions {
  std::vector<std::string> command;
  std::string run;                         ///< the mark of the attempt
  std::string directory{};                 ///< empty: ours
  std::vector<std::string> environment{};  ///< changes to ours: `NAME=value`, or `NAME` to unset
  Duration grace = std::chrono::seconds(2);
  std::function<void(std::uint32_t)> on_ended{};  ///< called after a stop, with how many processes had to be ended
};

struct ToolProcessEnd {
  std::optional<int> exit_status;  ///< neither this nor a signal: the warden was killed, and it is not known
  std::optional<int> signal;
  std::string error_tail;  ///< the end of stderr, at most kErrorTailMax bytes
};

class ToolProcess {
 public:
  static constexpr std::size_t kErrorTailMax = 4 << 10;
  static constexpr std::size_t kUnwrittenMax = 16 << 20;  ///< bytes for stdin that the process has not read

  /// `take_output` gets stdout as it arrives.
  ToolProcess(Wardens& wardens, ToolProcessOptions options, std::function<void(std::string_view)> take_output);
  ~ToolProcess();
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  /// Called once. Fails only if nothing was started. If the awaiting chain is stopped, the process is ended first.
  Task<Result<std::unique_ptr<ToolProcessEnd>>> run();
  /// Appends to its stdin. May be called before run(). False: the process does not read, too much is waiting.
  bool write(std::string_view text);
  void close_input();  ///< when everything is written
  /// Begins to end it; SIGKILL skips the grace period.
  void end(int signal);
  [[nodiscard]] bool is_started() const noexcept { return was_started_; }

 private:
  class Streams;
  Result<> start();
  Task<Result<std::unique_ptr<ToolProcessEnd>>> supervise();
  Task<> end_and_wait();
  Task<> feed();
  Task<> read(Descriptor& from, void (ToolProcess::*take)(std::string_view));
  void take_output(std::string_view bytes) { take_output_(bytes); }
  void take_errors(std::string_view bytes);
  std::unique_ptr<ToolProcessEnd> end_of(const WardenReport& report) const;

  Wardens& wardens_;
  ToolProcessOptions options_;
  std::function<void(std::string_view)> take_output_;
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<Ward> ward_;
  std::string unwritten_;
  bool close_input_ = false;
  Notification input_changed_, drained_;
  int open_pipes_ = 2;
  bool over_ = false;  // no process of it is alive
  bool was_started_ = false;
  std::optional<int> end_before_start_;
  std::string error_tail_;
};

}  // namespace stint::driver
