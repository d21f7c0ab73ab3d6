#include "driver/ward.hpp"

#include "driver/ladder.hpp"
#include "os/cgroup.hpp"
#include "os/resources.hpp"
#include "os/spawn.hpp"
#include "stint/combinators.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;

constexpr Duration kOverdue = 5s;  // beyond the grace period, for a warden that was ordered to end
constexpr Duration kReapEvery = 1ms;

std::string describe(const std::vector<os::Process>& processes) {
  std::string text;
  for (std::size_t i = 0; i < std::min(processes.size(), kNamedMost); ++i) {
    const os::Process& process = processes[i];
    text += (i == 0 ? "pid " : ", pid ") + std::to_string(process.pid) + " (state " + process.state + ")";
  }
  return processes.size() > kNamedMost ? text + ", …" : text;
}

}  // namespace

Wardens::~Wardens() {
  for (const pid_t pid : leaving_) {
    ::kill(pid, SIGKILL);  // it is exiting anyway, unless it was stopped (SIGSTOP)
    os::blocking_reap(pid);
  }
}

void Wardens::add(pid_t pid) {
  reap_leaving();
  pids_.push_back(pid);
}

void Wardens::remove(pid_t pid) { std::erase(pids_, pid); }

void Wardens::leave(pid_t pid) {
  leaving_.push_back(pid);
  reap_leaving();
}

void Wardens::reap_leaving() {
  std::erase_if(leaving_, [this](pid_t pid) {
    if (!os::try_reap(pid)) return false;
    remove(pid);
    return true;
  });
}

std::vector<pid_t> Wardens::not_orphans() const {
  std::vector<pid_t> pids = pids_;
  pids.insert(pids.end(), excluded_.begin(), excluded_.end());
  return pids;
}

std::vector<os::Process> Wardens::orphans() const { return os::descendants_of(::getpid(), not_orphans()); }

bool Wardens::reap_orphans() const {
  // A walk can miss a process, so only two full scans prove that none is left. wait(2) can't: it also counts wardens.
  auto left = orphans();
  for (int scans = 0; left.empty() && scans < 2; ++scans) left = os::scan_descendants_of(::getpid(), not_orphans());
  for (const os::Process& process : left) {
    if (process.parent == ::getpid() && process.is_zombie()) (void)os::try_reap(process.pid);
  }
  return !left.empty();
}

void Wardens::give_up(const std::vector<os::Process>& orphans) {
  for (const os::Process& process : orphans) excluded_.push_back(process.pid);
}

Ward::Ward(Wardens& wardens, const WardOptions& options, os::Fd control)
    : wardens_(wardens),
      cgroup_(options.cgroup),
      lease_(options.lease),
      grace_(options.grace),
      killed_max_(options.killed_max),
      control_(wardens.reactor().io(), control.release()) {}

Ward::~Ward() {
  if (pid_ != 0) wardens_.remove(pid_);
}

Result<std::unique_ptr<Ward>> Ward::start(Wardens& wardens, const WardOptions& options) {
  if (options.lease < kLeaseLeast) {
    const auto least = std::chrono::duration_cast<std::chrono::milliseconds>(kLeaseLeast).count();
    return fail(Errc::invalid, "the lease is too short: it must be " + std::to_string(least) + "ms or longer");
  }
  STINT_TRY(os::Pair ends, os::packet_pair());
  std::unique_ptr<Ward> ward(new Ward(wardens, options, std::move(ends.ours)));
  if (!ward->cgroup_.empty() && !os::make_cgroup(ward->cgroup_)) ward->cgroup_.clear();
  if (!ward->cgroup_.empty() && options.memory_bytes_max != 0) {
    os::limit_memory(ward->cgroup_, options.memory_bytes_max);
  }
  if (auto spawned = ward->spawn(options, ends.theirs); !spawned) {
    os::remove_cgroup(ward->cgroup_);
    return fail(std::move(spawned).error());
  }
  return ward;
}

Result<> Ward::spawn(const WardOptions& options, const os::Fd& theirs) {
  WardenPlan plan;
  plan.control = theirs.get();
  plan.slots = options.slots;
  plan.lease = lease_;
  plan.grace = grace_;
  plan.run = options.run;
  plan.cgroup = cgroup_;
  plan.own_group = options.own_group;
  plan.descriptors = os::descriptor_limit_before();
  os::SpawnOptions start;
  start.program = "/proc/self/exe";
  start.argv = {"stint", kWardenArgument};
  for (std::string& word : to_arguments(plan)) start.argv.push_back(std::move(word));
  start.argv.insert(start.argv.end(), options.command.begin(), options.command.end());
  start.environment = options.environment;
  start.keep = options.slots;
  start.keep.push_back(theirs.get());
  start.put = options.put;
  start.directory = options.directory;
  start.mask = options.mask;
  start.default_signals = options.own_group;  // in the caller's group it has the caller's dispositions
  if (options.copy) {
    const std::vector<std::string> words(start.argv.begin() + 2, start.argv.end());
    start.argv = {"stint", kWardenArgument};  // its plan is in memory, so `ps` shows only the command
    start.argv.insert(start.argv.end(), options.command.begin(), options.command.end());
    STINT_TRY(pid_, os::spawn_copy(start, [&words] { return warden_main(words); }));
  } else {
    STINT_TRY(pid_, os::spawn(start));
  }
  wardens_.add(pid_);
  return {};
}

void Ward::send(const Order& order) noexcept {
  (void)::send(control_.native_handle(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}
void Ward::beat() noexcept { send({Order::beat, 0}); }
void Ward::pause() noexcept { send({Order::pause, 0}); }
void Ward::end(int signal) {
  send({Order::end, signal});
  overdue_ = std::min(overdue_, wardens_.reactor().now() + grace_ + kOverdue);
}

std::string Ward::beyond_reach() const {
  std::string text;
  std::size_t named = 0;
  if (pid_ == 0) return text;  // 0 would mean every process
  for (const os::Process& process : os::descendants_of(pid_)) {
    if (process.is_zombie() || ::kill(process.pid, 0) == 0 || errno != EPERM) continue;
    if (named++ == kNamedMost) return text + ", …";
    text +=
        (text.empty() ? "pid " : ", pid ") + std::to_string(process.pid) + " (" + os::argument_of(process.pid, 0) + ")";
  }
  return text;
}

std::uint64_t Ward::cpu_ticks() const {
  std::uint64_t sum = 0;
  if (pid_ == 0) return sum;  // 0 would mean every process
  for (const os::Process& process : os::descendants_of(pid_)) sum += process.cpu_ticks;
  return sum;
}

Task<> Ward::readable() {
  (void)co_await control_.async_wait(Descriptor::wait_read, use_task);  // an error shows in the read that follows
}

Task<WardenReport> Ward::ended() {
  const Executor& clock = wardens_.reactor();
  for (TimePoint next_beat = clock.now() + lease_ / 4; !ended_;) {
    const bool ready = (co_await with_deadline(Deadline(std::min(next_beat, overdue_)), readable())).has_value();
    WardenReport received;
    const ssize_t got = ready ? ::recv(control_.native_handle(), &received, sizeof received, MSG_DONTWAIT) : -1;
    if (got == sizeof received) {
      wardens_.leave(std::exchange(pid_, 0));
      ended_ = received;
    } else if ((ready && got >= 0) || clock.now() >= overdue_) {
      ended_ = co_await end_alone();  // the warden was killed, or is frozen
    } else if (clock.now() >= next_beat) {
      beat();
      next_beat = clock.now() + lease_ / 4;
    }
  }
  co_return *ended_;
}

/// Ends the command without its warden.
Task<WardenReport> Ward::end_alone() {
  const Executor& clock = wardens_.reactor();
  const TimePoint since = clock.now();
  if (pid_ != 0) {
    ::kill(pid_, SIGKILL);  // our child and not yet reaped, so the pid can't have been reused
    os::blocking_reap(pid_);
    wardens_.remove(std::exchange(pid_, 0));
  }
  Ladder ladder(grace_, cgroup_, [this] { return wardens_.orphans(); });
  ladder.begin(overdue_ <= since ? SIGKILL : SIGTERM, since);
  const TimePoint give_up = since + grace_ + killed_max_;
  while (wardens_.reap_orphans()) {
    if (clock.now() >= give_up) {
      const auto left = wardens_.orphans();
      left_ = describe(left);
      wardens_.give_up(left);
      break;
    }
    ladder.step(clock.now());
    co_await sleep_for(kReapEvery);
  }
  WardenReport ended;
  ended.by_stint = true;
  ended.wait_status = SIGKILL;
  ended.processes = static_cast<std::uint32_t>(ladder.found());
  if (!cgroup_.empty()) ended.out_of_memory = os::out_of_memory_kills(cgroup_) > 0;
  os::remove_cgroup(cgroup_);
  ended.ending_us = std::chrono::round<std::chrono::microseconds>(clock.now() - since).count();
  co_return ended;
}

}  // namespace stint::driver
