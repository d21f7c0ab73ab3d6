#include "limit/host_limits.hpp"

#include "limit/listing.hpp"
#include "os/process.hpp"

#include <algorithm>
#include <unistd.h>

namespace stint::limit {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTellEvery = 250ms;  // a reason is gathered with a system call per ticket ahead
constexpr Duration kJoinAgain = 1ms;    // while the line is being compacted …
constexpr Duration kJoinMax = 2s;       // … which lasts only if who does it is frozen

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

/// Whether the listener hears of a reason now.
class Teller {
 public:
  Teller(const HostLimits::Listener& listener, TimePoint now) : listener_(listener), next_(now) {}
  ~Teller() {
    if (told_) listener_(nullptr);
  }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;
  void tell(HostWait& wait, std::uint32_t weight, TimePoint now) {
    if (!listener_ || now < next_) return;
    next_ = now + kTellEvery;
    domain::WaitReason reason = reason_of(wait, weight);
    if (told_ && *told_ == reason) return;
    told_ = std::move(reason);
    listener_(&*told_);
  }

 private:
  const HostLimits::Listener& listener_;
  TimePoint next_;
  std::optional<domain::WaitReason> told_;
};

}  // namespace

Task<Result<HostPermit>> HostLimits::acquire(std::vector<HostRequest> requests, Claimant who, Options options) {
  // By file, not by name: two names may mean one file (`a:b`, `a.b`), and everybody must take them in the same order.
  const auto file = [](const HostRequest& request) { return request.limit.line_path(); };
  std::ranges::sort(requests, {}, file);
  const auto twice = std::ranges::adjacent_find(requests, {}, file);
  if (twice != requests.end()) {  // the second would wait for the first
    co_return fail(Errc::invalid, "the limit '" + twice->limit.name + "' is asked for twice" +
                                      (std::next(twice)->limit.name == twice->limit.name
                                           ? std::string(". Name it once, with a weight")
                                           : ": '" + std::next(twice)->limit.name + "' is the same"));
  }
  HostPermit all;
  for (const HostRequest& request : requests) {
    STINT_CO_TRY(HostPermit permit, co_await acquire_one(request, who, options));
    all.merge(std::move(permit));
  }
  co_return all;
}

/// A line that is being compacted can be joined in a moment.
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
  Teller teller(options.listener, reactor_.now());
  for (bool rang = true;;) {
    const TimePoint now = reactor_.now();
    STINT_CO_TRY(const bool granted, wait.step(now, rang));
    if (granted) co_return wait.permit();
    const bool late = options.deadline.passed(now);
    if (late || !options.may_wait) {
      if (options.on_refusal) options.on_refusal(reason_of(wait, request.weight));
      co_return fail(late ? Errc::timed_out : Errc::full, "no permit of '" + request.limit.name + "' is free");
    }
    teller.tell(wait, request.weight, now);
    rang = co_await notifier_.wait(std::min(wait.next_check(), options.deadline.when()));
  }
}

}  // namespace stint::limit
