#include "limit/host_limits.hpp"

#include "os/owner.hpp"
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
  if (os::is_anothers(record)) text += " of " + os::user_name(*record.user);
  if (holder.unjudged)
    text += ", which was killed; only that user or root can check for leftover processes and end them";
  if (!os::can_see(record)) text += " in another container (if that container is gone for good, empty the slot's file)";
  if (holder.swept) text += ", which was killed; its leftover processes are being ended";
  if (record.capacity != 0 && record.capacity != capacity)
    text += ", which uses the capacity " + std::to_string(record.capacity);
  return text;
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
    WaitReason reason = reason_of(wait, weight);
    if (told_ && *told_ == reason) return;
    told_ = std::move(reason);
    listener_(&*told_);
  }

 private:
  const HostLimits::Listener& listener_;
  TimePoint next_;
  std::optional<WaitReason> told_;
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
  // By file, not by name: two names may mean one file (`a:b`, `a.b`), and everybody must take them in the same order.
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
      co_return fail(late ? Errc::timed_out : Errc::full, reason_of(wait, request.weight).describe());
    }
    teller.tell(wait, request.weight, now);
    rang = co_await notifier_.wait(std::min(wait.next_check(), options.deadline.when()));
  }
}

}  // namespace stint::limit
