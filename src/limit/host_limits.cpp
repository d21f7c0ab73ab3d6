#include "limit/host_limits.hpp"

#include "os/owner.hpp"
#include "os/process.hpp"

#include <algorithm>
#include <unistd.h>

namespace stint::limit {
namespace {

using namespace std::chrono_literals;

constexpr Duration kReportEvery = 250ms;  // a reason costs a system call per ticket ahead
constexpr Duration kJoinAgain = 1ms;      // while the line is compacted …
constexpr Duration kJoinMax = 2s;         // … which lasts only if the compacting process is frozen

os::SlotRecord record_of(const Claimant& who, std::uint32_t weight, WallTime now) {
  const os::Process self = os::this_process();
  os::SlotRecord record;
  record.run = who.run;
  record.cgroup = who.cgroup;
  record.label = who.label;
  record.pid = self.pid;
  record.start = self.start;
  record.weight = weight;
  record.since_ms = domain::to_unix_ms(now);
  record.namespace_id = os::pid_namespace();
  record.user = ::geteuid();
  record.boot = os::boot_id();
  return record;
}

WaitReason reason_of(HostWait& wait, std::uint32_t weight) {
  WaitReason reason;
  reason.limit = wait.limit().name;
  reason.capacity = capacity_now(wait.limit());
  reason.weight = weight;
  reason.ahead = wait.ahead();
  reason.holders = wait.holders();
  return reason;
}

std::string describe(const Slots::Holder& holder, std::uint32_t capacity) {
  if (!holder.record) return "another tool";
  const os::SlotRecord& record = *holder.record;
  std::string text = record.label.empty() ? "pid " + std::to_string(record.pid)
                                          : record.label + " (pid " + std::to_string(record.pid) + ")";
  if (os::is_other_users(record)) text += " of " + os::user_name(*record.user);
  if (holder.unjudged)
    text += ", which was killed; only that user or root can check for leftover processes and end them";
  if (!os::can_see(record)) text += " in another container (if that container is gone for good, empty the slot's file)";
  if (holder.swept) text += ", which was killed; its leftover processes are being ended";
  if (record.capacity != 0 && record.capacity != capacity)
    text += ", which uses the capacity " + std::to_string(record.capacity);
  return text;
}

/// Reports the reason of a wait to the listener, with a bounded rate.
class ReasonReporter {
 public:
  ReasonReporter(const HostLimits::Listener& listener, TimePoint now) : listener_(listener), next_(now) {}
  ~ReasonReporter() {
    if (reported_) listener_(nullptr);
  }
  ReasonReporter(const ReasonReporter&) = delete;
  ReasonReporter& operator=(const ReasonReporter&) = delete;
  void report(HostWait& wait, std::uint32_t weight, TimePoint now) {
    if (!listener_ || now < next_) return;
    next_ = now + kReportEvery;
    WaitReason reason = reason_of(wait, weight);
    if (reported_ && *reported_ == reason) return;
    reported_ = std::move(reason);
    listener_(&*reported_);
  }

 private:
  const HostLimits::Listener& listener_;
  TimePoint next_;
  std::optional<WaitReason> reported_;
};

}  // namespace

bool operator==(const WaitReason& a, const WaitReason& b) {
  const auto same = [](const Slots::Holder& x, const Slots::Holder& y) {
    return x.index == y.index && x.swept == y.swept && x.unjudged == y.unjudged &&
           x.record.has_value() == y.record.has_value() &&
           (!x.record || (x.record->run == y.record->run && x.record->label == y.record->label));
  };
  return a.limit == b.limit && a.capacity == b.capacity && a.weight == b.weight && a.ahead == b.ahead &&
         std::ranges::equal(a.holders, b.holders, same);
}

std::string WaitReason::describe() const {
  std::string text = limit + ": ";
  text += ahead == 0 ? "next in line" : std::to_string(ahead) + " ahead in line";
  text += " for " + std::to_string(weight) + " of " + std::to_string(capacity);
  std::vector<std::string> names;
  for (const Slots::Holder& holder : holders) {
    std::string name = limit::describe(holder, capacity);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "; held by " : ", ") + names[i];
  return text;
}

Task<Result<HostPermit>> HostLimits::acquire(std::vector<HostRequest> requests, Claimant who, Options options) {
  // By file, not by name: two names may mean one file (`a:b`, `a.b`), and all processes must take them in the same
  // order.
  const auto file = [](const HostRequest& request) { return request.limit.line_path(); };
  std::ranges::sort(requests, {}, file);
  const auto twice = std::ranges::adjacent_find(requests, {}, file);
  if (twice != requests.end()) {  // the second would wait for the first
    co_return fail(Errc::invalid, "the limit '" + twice->limit.name + "' is listed twice" +
                                      (std::next(twice)->limit.name == twice->limit.name
                                           ? std::string(". List it once, with a weight")
                                           : ": '" + std::next(twice)->limit.name + "' names the same limit"));
  }
  HostPermit all;
  for (const HostRequest& request : requests) {
    STINT_CO_TRY(HostPermit permit, co_await acquire_one(request, who, options));
    all.merge(std::move(permit));
  }
  co_return all;
}

/// Retries: a line that is being compacted can be joined a moment later.
Task<Result<HostWait>> HostLimits::join(const HostRequest& request, const Claimant& who, Deadline deadline) {
  const Deadline end = deadline.sooner(Deadline::after(reactor_.now(), kJoinMax));
  while (true) {
    auto wait =
        HostWait::open(request.limit, record_of(who, request.weight, system_.wall_now()), who.marks, notifier_.watch());
    if (wait || wait.error().code() != Errc::unavailable || end.passed(reactor_.now())) co_return wait;
    co_await sleep_for(kJoinAgain);
  }
}

Task<Result<HostPermit>> HostLimits::acquire_one(HostRequest request, const Claimant& who, const Options& options) {
  STINT_CO_TRY(HostWait wait, co_await join(request, who, options.deadline));
  ReasonReporter reporter(options.listener, reactor_.now());
  for (bool notified = true;;) {
    const TimePoint now = reactor_.now();
    STINT_CO_TRY(const bool granted, wait.step(now, notified));
    if (granted) co_return wait.permit();
    const bool late = options.deadline.passed(now);
    if (late || !options.may_wait) {
      co_return fail(late ? Errc::timed_out : Errc::full, reason_of(wait, request.weight).describe());
    }
    reporter.report(wait, request.weight, now);
    notified = co_await notifier_.wait(std::min(wait.next_check(), options.deadline.when()));
  }
}

}  // namespace stint::limit
