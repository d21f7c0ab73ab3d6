/// How one agent CLI is spoken to: its command line, what its lines mean, how it is asked to end, and what an attempt
/// came to. Pure: no I/O, no clock. The process side starts what `launch` says, feeds stdout to `read`, line by line or
/// piece by piece, and asks `finish` when no process of the attempt is left.
///
/// One object per attempt; not thread-safe. Lines may be garbage, cut or huge; events that nobody knows are data. What
/// is kept is bounded, whatever comes. The exit status alone never decides where a dialect has a final event.
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
  std::vector<std::pair<std::string, std::optional<std::string>>> env;  ///< on top of the parent's; nothing: unset
  std::string stdin_text;
  bool close_stdin = true;  ///< after the text; else when the result was seen
};

enum class ProgressKind : std::uint8_t {
  text,
  thinking,
  tool_start,
  tool_end,
  heartbeat,
  rate_info,
  usage,
  note,
  conversation
};
[[nodiscard]] std::string_view to_string(ProgressKind kind) noexcept;

/// What a line means to who watches.
struct Progress {
  static constexpr std::size_t kTextMax = 64 << 10;
  ProgressKind kind = ProgressKind::heartbeat;
  std::string text;
  Usage usage;           ///< so far; of kind usage only
  bool is_part = false;  ///< of kind text: a delta, which the next one continues; else a whole message
  std::string call{};    ///< of kinds tool_start and tool_end: the id of the call, if the CLI gives one
  std::string tool{};    ///< of kind tool_start: its name
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
  static constexpr std::size_t kLineMax = 16 << 20;  // longer lines are not looked into

  Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;
  virtual ~Dialect() = default;

  [[nodiscard]] virtual Launch launch(const Invocation& invocation) = 0;
  /// False: stdout means nothing but itself, and is read in pieces as they come.
  [[nodiscard]] virtual bool has_lines() const { return true; }
  /// One line of stdout, without its end; or a piece. Appends to `out`.
  virtual void read(std::string_view line, std::vector<Progress>& out) = 0;
  /// One line of stderr, without its end. Some CLIs announce their own retries there and nowhere else.
  virtual void read_error(std::string_view /*line*/) {}
  /// True: the CLI is about to wait or to ask the provider again by itself, longer or more often than it may. The
  /// attempt is ended in the dialect's own way, and its outcome is what `finish` says: one retry loop, Stint's.
  [[nodiscard]] virtual bool gives_up() const { return false; }
  /// While the CLI waits for the network or the provider: what it said of it, in one line; empty: it does not.
  [[nodiscard]] virtual std::string waits_for() const { return {}; }
  /// True: the conversation that it was told to go on with does not exist.
  [[nodiscard]] virtual bool is_conversation_unknown() const { return false; }
  /// True once the final event came: from then on the process has a grace to leave.
  [[nodiscard]] virtual bool result_seen() const = 0;
  /// Asked at most once, when the attempt shall end early.
  [[nodiscard]] virtual PoliteEnd polite_end() = 0;
  /// What the attempt came to. Why we killed it (stall, budget, cancel) is known to who did: here it is `cancelled`,
  /// unless the work was done before.
  [[nodiscard]] virtual Outcome finish(const ProcessEnd& end) = 0;
};

/// An id for a new conversation of an attempt, the same for the same mark; empty: the CLI chooses its own.
[[nodiscard]] std::string choose_conversation(std::string_view driver, std::string_view mark);

/// "claude", "codex", "gemini" or "command"; `Errc::invalid` for any other.
[[nodiscard]] Result<std::unique_ptr<Dialect>> make_dialect(std::string_view driver);

}  // namespace stint::driver
