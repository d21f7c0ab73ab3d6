// Invariants
// 1. Slots are released after wait() returned ECHILD to a subreaper, never before: no descendant is alive then.
// 2. The warden of an agent inherits its control socket, its slots and nothing else; what it has or opens is
//    close-on-exec. So the command gets only the descriptors that it was meant to have, and a connection or a port is
//    free as soon as its owner closes it.
// 3. The warden has the mark in its own environment, so every process between fork and exec has it, too.
// 4. Ctrl-C and Ctrl-Z are for Stint and for the command of `with`, which stays in the caller's process group. The
//    warden leaves that group before the command begins, and its session as well. A parent in another group of the same
//    session would tie the caller's group to the session; if that is its only tie (cron, a container, `setsid`), the
//    end of the command would orphan the group, and the kernel would send SIGHUP to all of it if one process is
//    stopped.
#include "driver/warden.hpp"

#include "driver/ladder.hpp"
#include "os/cgroup.hpp"
#include "os/fd.hpp"
#include "os/number.hpp"
#include "os/process.hpp"
#include "os/resources.hpp"
#include "os/slot_file.hpp"
#include "os/spawn.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// Processes that outlive the command may finish by themselves for this long (`> >(tee log)`); then the ladder begins.
constexpr Duration kLinger = 200ms;
constexpr Duration kLeftGrace = 200ms;  // between SIGTERM and SIGKILL, for processes that outlive an agent's CLI
constexpr Duration kFrozenGap = 500ms;  // woken so much later than asked: this process was stopped, too
constexpr Duration kLongestPoll = 60s;
constexpr std::size_t kPlanWords = 8;
constexpr std::size_t kRunWord = 3;  // of the plan

int poll_ms(TimePoint when, TimePoint now, Duration most) {
  const Duration left = std::clamp(when - now, Duration::zero(), most);
  return static_cast<int>(std::chrono::ceil<milliseconds>(left).count());
}

/// Blocks the signals that a warden reads from a descriptor. `before` gets the previous mask, which is the command's.
os::Fd watch_signals(sigset_t& before) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, &before);
  return os::Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int last_signal(const os::Fd& signals) {
  signalfd_siginfo info{};
  int last = 0;
  while (::read(signals.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) last = static_cast<int>(info.ssi_signo);
  }
  return last;
}

/// The pid, or the errno of what failed.
struct Start {
  pid_t pid = 0;
  int error = 0;
};

/// In the child: waits until the warden has left the session, then executes. Writes an errno to `warden` if that fails.
[[noreturn]] void execute(std::vector<char*>& argv, const WardenPlan& plan, const sigset_t& mask, int warden) {
  char go = 0;
  if (plan.own_group) {
    ::setpgid(0, 0);
  } else if (::read(warden, &go, 1) != 1) {
    ::_exit(127);  // the warden was killed
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  os::set_descriptor_limit(plan.descriptors);
  ::execvp(argv[0], argv.data());
  (void)!::write(warden, &errno, sizeof errno);
  ::_exit(127);
}

/// Forks and executes: safe because the warden has one thread, and the child starts inside its cgroup.
Start start_command(std::vector<char*>& argv, const WardenPlan& plan, const sigset_t& mask) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {0, errno};
  os::Fd ours(ends[0]), theirs(ends[1]);
  const pid_t pid = os::fork_into_cgroup(plan.cgroup);
  if (pid < 0) return {0, errno};
  if (pid == 0) {
    ours.reset();  // or the child's read would not end if the warden is killed
    execute(argv, plan, mask, theirs.get());
  }
  theirs.reset();
  if (!plan.own_group) {
    os::leave_session();
    (void)::send(ours.get(), "", 1, MSG_NOSIGNAL);
  }
  int error = 0;
  if (::read(ours.get(), &error, sizeof error) != sizeof error) return {pid, 0};
  os::blocking_reap(pid);
  return {0, error};
}

/// The state of a warden. Its loop: reap, check the deadlines, wait for the next event.
class Warden {
 public:
  explicit Warden(WardenPlan plan)
      : control_(plan.control),
        plan_(std::move(plan)),
        ladder_(plan_.grace, plan_.cgroup, [] { return os::descendants_of(::getpid()); }) {}

  int run(std::vector<char*> argv) {
    // Under `with` the command has its caller's descriptors; an agent's process must inherit none.
    if (plan_.own_group) ended_.start_errno = close_inherited();
    sigset_t mask;
    const os::Fd signals = watch_signals(mask);
    os::become_subreaper();
    if (plan_.own_group) ::setpgid(0, 0);
    pollfd orphaned = {control_.get(), 0, 0};  // if Stint died meanwhile, nothing is started any more
    if (::poll(&orphaned, 1, 0) == 1 || ended_.start_errno != 0) return finish();
    const Start command = start_command(argv, plan_, mask);
    ended_.start_errno = command.error;
    close_streams();
    lease_end_ = Clock::now() + plan_.lease;
    while (is_anything_left(command.pid)) {
      const TimePoint now = Clock::now();
      if (status_ && !left_since_) left_since_ = now;
      const TimePoint linger_end = left_since_ && !lingered_ ? *left_since_ + kLinger : TimePoint::max();
      if (now >= linger_end) end_what_is_left(now);
      if (now >= lease_end_ && !ladder_.begun()) {
        ended_.by_lease = true;
        begin(SIGTERM, now);
      }
      ladder_.step(now);
      wait(signals, std::min({ladder_.next(), lease_end_, lingered_ ? TimePoint::max() : linger_end}));
    }
    return finish();
  }

 private:
  int close_inherited() const {
    std::vector<int> ours = plan_.slots;
    ours.push_back(control_.get());
    return os::close_others(std::move(ours));
  }

  bool is_anything_left(pid_t command) {
    const os::Reaped reaped = os::reap_all(command);
    if (reaped.status) status_ = reaped.status;
    return reaped.any_left;
  }

  /// The command has ended. An agent's CLI had its grace period: processes that outlive it have no work to finish.
  void end_what_is_left(TimePoint now) {
    lingered_ = true;
    begin(SIGTERM, now);
    if (plan_.own_group) ladder_.hasten(std::min(plan_.grace, kLeftGrace), now);
  }

  void begin(int signal, TimePoint now) {
    if (!ending_since_) ending_since_ = left_since_.value_or(now);
    ladder_.begin(signal, now);
  }

  /// The command has its own copies; those of the warden would keep a pipe open whose reader waits for its end.
  static void close_streams() {
    const os::Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (int stream = 0; nothing && stream <= 2; ++stream) ::dup2(nothing.get(), stream);
  }

  void wait(const os::Fd& signals, TimePoint when) {
    pollfd wake[] = {{signals.get(), POLLIN, 0}, {control_.get(), POLLIN, 0}};
    const TimePoint before = Clock::now();
    const int pause = poll_ms(when, before, std::min<Duration>(plan_.lease / 4, kLongestPoll));
    ::poll(wake, control_ ? 2 : 1, pause);
    const TimePoint now = Clock::now();
    // Woken far too late: the whole system was stopped, Stint as well. It gets a whole lease for its next heartbeat.
    if (lease_end_ != TimePoint::max() && now - before > milliseconds(pause) + kFrozenGap) {
      lease_end_ = now + plan_.lease;
    }
    if (const int signal = last_signal(signals)) begin(signal, now);
    if (control_ && wake[1].revents != 0) listen(now);
  }

  void listen(TimePoint now) {
    Order order{};
    ssize_t got = 0;
    while ((got = ::recv(control_.get(), &order, sizeof order, MSG_DONTWAIT)) == sizeof order) {
      if (order.kind == Order::beat && !ladder_.begun()) lease_end_ = now + plan_.lease;
      if (order.kind == Order::pause) lease_end_ = TimePoint::max();
      if (order.kind == Order::end) begin(order.signal, now);
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    control_.reset();  // Stint is gone
    lease_end_ = TimePoint::max();
    begin(SIGTERM, now);
  }

  int finish() {
    if (!plan_.cgroup.empty()) ended_.out_of_memory = os::out_of_memory_kills(plan_.cgroup) > 0;
    os::remove_cgroup(plan_.cgroup);
    for (const int slot : plan_.slots) os::release_slot(slot, plan_.run);
    ended_.wait_status = status_.value_or(0);
    ended_.processes = static_cast<std::uint32_t>(ladder_.found());
    if (ending_since_) {
      ended_.ending_us = std::chrono::round<std::chrono::microseconds>(Clock::now() - *ending_since_).count();
    }
    if (control_) (void)::send(control_.get(), &ended_, sizeof ended_, MSG_NOSIGNAL | MSG_DONTWAIT);
    return 0;
  }

  os::Fd control_;
  WardenPlan plan_;
  Ladder ladder_;
  WardenReport ended_;
  std::optional<int> status_;
  std::optional<TimePoint> left_since_;  // the command has ended, but a descendant is alive
  bool lingered_ = false;                // kLinger is over
  std::optional<TimePoint> ending_since_;
  TimePoint lease_end_;
};

}  // namespace

std::vector<std::string> to_arguments(const WardenPlan& plan) {
  std::string slots;
  for (const int slot : plan.slots) slots += std::to_string(slot) + ",";
  const auto ms = [](Duration duration) {
    return std::to_string(std::chrono::duration_cast<milliseconds>(duration).count());
  };
  return {std::to_string(plan.control),
          ms(plan.lease),
          ms(plan.grace),
          plan.run,
          plan.cgroup.empty() ? "-" : plan.cgroup,
          slots.empty() ? "-" : slots,
          plan.own_group ? "group" : "-",
          std::to_string(plan.descriptors)};
}

std::string watched_by(pid_t pid) {
  constexpr std::size_t kBefore = 2;  // `stint __warden`
  return os::argument_of(pid, kBefore - 1) == kWardenArgument ? os::argument_of(pid, kBefore + kRunWord) : "";
}

int warden_main(const std::vector<std::string>& arguments) {
  if (arguments.size() <= kPlanWords) return 125;  // not for people
  WardenPlan plan;
  plan.control = os::number<int>(arguments[0]);
  plan.lease = milliseconds(os::number<std::int64_t>(arguments[1]));
  plan.grace = milliseconds(os::number<std::int64_t>(arguments[2]));
  plan.run = arguments[kRunWord];
  if (arguments[4] != "-") plan.cgroup = arguments[4];
  for (std::size_t from = 0; arguments[5] != "-" && from < arguments[5].size();) {
    const auto to = arguments[5].find(',', from);
    plan.slots.push_back(os::number<int>(arguments[5].substr(from, to - from)));
    from = to + 1;
  }
  plan.own_group = arguments[6] == "group";
  plan.descriptors = os::number<std::uint64_t>(arguments[7]);
  ::fcntl(plan.control, F_SETFD, FD_CLOEXEC);
  for (const int slot : plan.slots) ::fcntl(slot, F_SETFD, FD_CLOEXEC);
  std::vector<char*> argv;
  for (std::size_t i = kPlanWords; i < arguments.size(); ++i) argv.push_back(const_cast<char*>(arguments[i].c_str()));
  argv.push_back(nullptr);
  // Exits at once: the end of a warden must not wait for destructors, nor for a sanitizer's final check, which forks.
  ::_exit(Warden(std::move(plan)).run(std::move(argv)));
}

}  // namespace stint::driver
