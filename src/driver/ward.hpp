/// Stint's side of one warden: beats while the command lives, tells it to end, and hears of the end. A process that
/// starts wards must be a child subreaper: when a warden is killed or frozen, its work is done here. Own thread only.
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

/// With the executor's own type, which is a third of the size of one that may be any.
using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

/// Beats come four times as often; a shorter lease would be spent on them.
inline constexpr Duration kLeaseLeast = std::chrono::milliseconds(100);

struct WardOptions {
  std::string run;                     ///< the mark: `<id>:<fence>`
  std::string cgroup;                  ///< to be made; empty: none
  std::uint64_t memory_bytes_max = 0;  ///< of the cgroup; 0: none
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< `NAME=value`, without the mark
  std::string directory;                 ///< empty: ours
  std::vector<int> slots;                ///< descriptors of held slots, shared with the warden
  std::vector<std::pair<int, int>> put;  ///< streams of the command: {ours, theirs}
  const sigset_t* mask = nullptr;        ///< the command's signal mask; null: ours
  bool own_group = false;                ///< false: the command stays in our process group
  /// The warden is a copy of this process, not a fresh one: it is there sooner. For a process with one thread that has
  /// nothing else to do.
  bool copy = false;
  Duration lease =
      std::chrono::seconds(10);  ///< without a beat for so long, Stint counts as frozen; kLeaseLeast or more
  Duration grace = std::chrono::seconds(2);  ///< between the polite signal and SIGKILL
  /// Without a warden, beyond the grace: then what is still alive is given up, and the report says so.
  Duration killed_max = std::chrono::seconds(30);
};

/// The wardens of this process: what it must not take for orphans.
class Wardens {
 public:
  /// Children that the process has already are nothing of ours: a shell may have started them before it became us.
  explicit Wardens(Reactor& reactor) : reactor_(reactor), strangers_(os::own_children()) {}
  ~Wardens();
  Wardens(const Wardens&) = delete;
  Wardens& operator=(const Wardens&) = delete;
  Reactor& reactor() noexcept { return reactor_; }
  /// Room for one read, for all who read on this thread: they wait until there is something, read and use it at once. A
  /// buffer for each pipe of each run would be most of what a run that waits takes.
  [[nodiscard]] std::span<char> read_room() noexcept { return {room_.get(), kReadMax}; }
  void add(pid_t pid);
  void remove(pid_t pid);  // reaped
  void leave(pid_t pid);   // has said its last: reaped when it is gone, at the latest by the destructor
  /// Children of this process, and what is below them, that belong to no living warden: what dead ones left to us.
  [[nodiscard]] std::vector<os::Process> orphans() const;
  /// Reaps them. False when none is left, by two scans of all processes in a row.
  [[nodiscard]] bool reap_orphans() const;
  /// They do not end, not even by SIGKILL: from here on they are none of ours.
  void give_up(const std::vector<os::Process>& orphans);

 private:
  static constexpr std::size_t kReadMax = 64 << 10;  // what a pipe holds
  void reap_leaving();
  [[nodiscard]] std::vector<pid_t> not_orphans() const;

  Reactor& reactor_;
  std::vector<pid_t> strangers_;
  std::vector<pid_t> pids_;     // not yet reaped
  std::vector<pid_t> leaving_;  // of those
  std::unique_ptr<char[]> room_ = std::make_unique_for_overwrite<char[]>(kReadMax);
};

class Ward {
 public:
  /// Starts warden and command. The cgroup is made if it can be; else walks alone have to do.
  static Result<std::unique_ptr<Ward>> start(Wardens& wardens, const WardOptions& options);
  ~Ward();  // closes the control socket: if the command still lives, the warden ends it
  Ward(const Ward&) = delete;
  Ward& operator=(const Ward&) = delete;

  /// Until nothing of the command is alive. Call it again if it was stopped: a cancel does not end the command, end()
  /// does.
  Task<Ended> ended();
  /// Begins the ending; SIGKILL hurries one that has begun.
  void end(int signal);
  /// No lease until the next beat: Stint is about to be stopped (Ctrl-Z).
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
  Task<Ended> end_alone();
  void send(const Order& order) noexcept;

  Wardens& wardens_;
  std::string cgroup_;
  Duration lease_;
  Duration grace_;
  Duration killed_max_;
  std::string left_;
  Descriptor control_;
  pid_t pid_ = 0;
  TimePoint overdue_ = TimePoint::max();  // told to end, and not done by then: it is frozen itself
  std::optional<Ended> ended_;
};

}  // namespace stint::driver
