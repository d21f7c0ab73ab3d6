#include "limit/host_limits.hpp"

#include "limit/listing.hpp"
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

domain::WaitReason reason_of(HostWait& wait, std::uint32_t weight) {
  const std::vector<Slots::Holder> holders = wait.holders();
  domain::WaitReason reason{.cause = domain::WaitCause::limit,
                            .limit = wait.limit().name,
                            .capacity = capacity_now(wait.limit()),
                            .held = static_cast<std::int64_t>(holders.size()),
                            .weight = weight,
                            .ahead = static_cast<std::uint32_t>(wait.ahead())};
  for (const Slots::Holder& holder : holders) reason.holders.push_back(entry_of(holder, *reason.capacity));
  return reason;
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
    domain::WaitReason reason = reason_of(wait, weight);
    if (reported_ && *reported_ == reason) return;
    reported_ = std::move(reason);
    listener_(&*reported_);
  }

 private:
  const HostLimits::Listener& listener_;
  TimePoint next_;
  std::optional<domain::WaitReason> reported_;
};

}  // namespace

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
      if (options.on_refusal) options.on_refusal(reason_of(wait, request.weight));
      co_return fail(late ? Errc::timed_out : Errc::full, "no free permit of '" + request.limit.name + "'");
    }
    reporter.report(wait, request.weight, now);
    notified = co_await notifier_.wait(std::min(wait.next_check(), options.deadline.when()));
  }
}

}  // namespace stint::limit
