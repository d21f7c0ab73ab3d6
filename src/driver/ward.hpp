/// Stint's side of one warden: sends heartbeats while the command lives, orders it to end, and receives its report. A
/// process that starts wards must be a child subreaper: if a warden is killed or frozen, the ward ends the command
/// itself. Own thread only.
#pragma once

#include "driver/warden.hpp"
#include "os/fd.hpp"
#include "os/process.hpp"
#include "stint/asio.hpp"
#include "stint/task.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <csignal>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stint::driver {

/// With the concrete executor type: a third of the size of the type-erased one.
using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

/// Heartbeats are sent four times per lease; a shorter lease would cause too many of them.
inline constexpr Duration kLeaseLeast = std::chrono::milliseconds(100);

struct WardOptions {
  std::string run;                     ///< the mark: `<id>:<fence>`
  std::string cgroup;                  ///< to create; empty: none
  std::uint64_t memory_bytes_max = 0;  ///< of the cgroup; 0: none
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< `NAME=value`, without the mark
  std::string directory;                 ///< empty: ours
  std::vector<int> slots;                ///< descriptors of held slots, shared with the warden
  std::vector<std::pair<int, int>> put;  ///< streams of the command: {ours, theirs}
  const sigset_t* mask = nullptr;        ///< the command's signal mask; null: ours
  bool own_group = false;                ///< false: the command stays in our process group
  /// The warden is a forked copy of this process, not a new program: it starts sooner. Only for a process with one
  /// thread that does nothing else.
  bool copy = false;
  Duration lease =
      std::chrono::seconds(10);              ///< after so long without a heartbeat Stint is frozen; kLeaseLeast or more
  Duration grace = std::chrono::seconds(2);  ///< between the polite signal and SIGKILL
  /// Without a warden, beyond the grace period: then processes that are still alive are given up and reported.
  Duration killed_max = std::chrono::seconds(30);
};

/// The wardens of this process: the children that are not orphans.
class Wardens {
 public:
  /// Excludes children that this process already has: a shell may have started them before it became this program.
  explicit Wardens(Reactor& reactor) : reactor_(reactor), excluded_(os::own_children()) {}
  ~Wardens();
  Wardens(const Wardens&) = delete;
  Wardens& operator=(const Wardens&) = delete;
  Reactor& reactor() noexcept { return reactor_; }
  /// A buffer for one read, shared by all readers of this thread: each waits until its pipe is readable, then reads and
  /// uses the data at once. A buffer per pipe would be most of the memory of a waiting run.
  [[nodiscard]] std::span<char> read_room() noexcept { return {room_.get(), kReadMax}; }
  void add(pid_t pid);
  void remove(pid_t pid);  // it was reaped
  void leave(pid_t pid);   // it has sent its report: reaped when it has exited, at the latest by the destructor
  /// Children of this process, and their descendants, that have no living warden: this process inherited them from
  /// dead wardens.
  [[nodiscard]] std::vector<os::Process> orphans() const;
  /// Reaps orphans. False when none is left, proven by two scans of all processes in a row.
  [[nodiscard]] bool reap_orphans() const;
  /// These do not end, even after SIGKILL: from here on they are excluded.
  void give_up(const std::vector<os::Process>& orphans);

 private:
  static constexpr std::size_t kReadMax = 64 << 10;  // the default capacity of a pipe
  void reap_leaving();
  [[nodiscard]] std::vector<pid_t> not_orphans() const;

  Reactor& reactor_;
  std::vector<pid_t> excluded_;
  std::vector<pid_t> pids_;     // not yet reaped
  std::vector<pid_t> leaving_;  // of pids_
  std::unique_ptr<char[]> room_ = std::make_unique_for_overwrite<char[]>(kReadMax);
};

class Ward {
 public:
  /// Starts warden and command. If the cgroup can't be created, processes are found by walking /proc alone.
  static Result<std::unique_ptr<Ward>> start(Wardens& wardens, const WardOptions& options);
  ~Ward();  // closes the control socket: if the command still lives, the warden ends it
  Ward(const Ward&) = delete;
  Ward& operator=(const Ward&) = delete;

  /// Waits until no process of the command is alive. Call it again after a cancel: a cancel does not end the command,
  /// end() does.
  Task<WardenReport> ended();
  /// Begins to end the command; SIGKILL skips the grace period.
  void end(int signal);
  /// Suspends the lease until the next heartbeat: Stint is about to be stopped (Ctrl-Z).
  void pause() noexcept;
  void beat() noexcept;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// What did not end, for people; empty: nothing is left.
  [[nodiscard]] const std::string& left() const noexcept { return left_; }
  /// Processes of the command that this user may not signal (a setuid program), for people; empty: none.
  [[nodiscard]] std::string beyond_reach() const;
  /// Of the whole tree, in clock ticks: a sign of life.
  [[nodiscard]] std::uint64_t cpu_ticks() const;

 private:
  Ward(Wardens& wardens, const WardOptions& options, os::Fd control);
  Result<> spawn(const WardOptions& options, const os::Fd& theirs);
  Task<> readable();
  Task<WardenReport> end_alone();
  void send(const Order& order) noexcept;

  Wardens& wardens_;
  std::string cgroup_;
  Duration lease_;
  Duration grace_;
  Duration killed_max_;
  std::string left_;
  Descriptor control_;
  pid_t pid_ = 0;
  TimePoint overdue_ = TimePoint::max();  // a warden that was ordered to end and has not by then is frozen
  std::optional<WardenReport> ended_;
};

}  // namespace stint::driver
