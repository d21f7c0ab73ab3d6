/// The protocol of one agent CLI: its command line, the meaning of its output lines, how to ask it to end, and the
/// outcome of an attempt. Pure: no I/O, no clock. ProcessAttempt starts what `launch` returns, passes stdout to `read`,
/// line by line or piece by piece, and calls `finish` when no process of the attempt is left.
///
/// One object per attempt; not thread-safe. Lines may be garbage, cut or huge, and unknown events are not errors. What
/// a dialect keeps is bounded for any input. If the protocol has a final event, the exit status alone never decides.
#pragma once

#include "domain/attempt_spec.hpp"
#include "domain/outcome.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::driver {

using domain::Invocation;
using domain::Permissions;

struct Launch {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::optional<std::string>>> env;  ///< changes to the parent's; no value: unset
  std::string stdin_text;
  bool close_stdin = true;  ///< after the text; false: when the result was seen
};

enum class ProgressKind : std::uint8_t {
  text,
  thinking,
  tool_start,
  tool_end,
  model_start,
  model_end,
  heartbeat,
  rate_info,
  usage,
  note,
  conversation
};
[[nodiscard]] std::string_view to_string(ProgressKind kind) noexcept;

/// What a line of output means.
struct Progress {
  static constexpr std::size_t kTextMax = 64 << 10;
  ProgressKind kind = ProgressKind::heartbeat;
  std::string text;
  Usage usage;           ///< of kind usage: so far; of kind model_end: of that call
  bool is_part = false;  ///< of kind text: a delta, which the next one continues; else a whole message
  std::string call{};    ///< of a tool or model call: its id, if the CLI gives one
  std::string tool{};    ///< of kinds tool_start and model_start: the name of the tool or model
};

struct ProcessEnd {
  static constexpr std::size_t kTailMax = 4 << 10;
  std::optional<int> exit_status;
  std::optional<int> signal;
  bool killed_by_us = false;
  bool oom = false;
  std::string stderr_tail;
};

/// The first step of the ending ladder: bytes for stdin, then its close, then a signal; each only if given.
struct PoliteEnd {
  std::string stdin_bytes;
  bool close_stdin = false;
  int signal = 0;  ///< 0: none
};

class Dialect {
 public:
  static constexpr std::size_t kLineMax = 16 << 20;  // longer lines are not parsed

  Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;
  virtual ~Dialect() = default;

  [[nodiscard]] virtual Launch launch(const Invocation& invocation) = 0;
  /// False: stdout is plain text without a protocol, and is read in pieces as they arrive.
  [[nodiscard]] virtual bool has_lines() const { return true; }
  /// Reads one line of stdout, without its end; or a piece. Appends to `out`.
  virtual void read(std::string_view line, std::vector<Progress>& out) = 0;
  /// Reads one line of stderr, without its end. Some CLIs announce their own retries only there.
  virtual void read_error(std::string_view /*line*/) {}
  /// True: the CLI is about to wait or to retry by itself, longer or more often than it may. The attempt is then ended
  /// with polite_end(), and its outcome is that of `finish`: only Stint retries.
  [[nodiscard]] virtual bool gives_up() const { return false; }
  /// While the CLI waits for the network or the provider: the reason that it gave, in one line; empty: it does not
  /// wait.
  [[nodiscard]] virtual std::string waits_for() const { return {}; }
  /// True: the conversation to continue does not exist.
  [[nodiscard]] virtual bool is_conversation_unknown() const { return false; }
  /// True after the final event: from then on the process has a grace period to exit.
  [[nodiscard]] virtual bool result_seen() const = 0;
  /// Called at most once, to end the attempt early.
  [[nodiscard]] virtual PoliteEnd polite_end() = 0;
  /// The outcome of the attempt. If Stint killed the process (stall, budget, cancel), it is `cancelled` here unless the
  /// work was done before; ProcessAttempt knows the reason.
  [[nodiscard]] virtual Outcome finish(const ProcessEnd& end) = 0;
};

}  // namespace stint::driver
