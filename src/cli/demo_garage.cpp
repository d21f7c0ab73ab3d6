#include "cli/demo_garage.hpp"

#include <algorithm>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using wire::DemoEvent;
using wire::DemoEventKind;

constexpr Duration kLookAgain = 50ms;   // how often the director checks its condition
constexpr Duration kLookMost = 2500ms;  // how long it checks before it skips the act
constexpr Duration kDwell = 1200ms;     // gives a viewer time to see what is about to happen
constexpr Duration kLargeStay = 2s;

Semaphore::Options options_for(const Executor& executor) {
  Semaphore::Options options;
  options.track_holders = true;
  options.clock = &executor;
  return options;
}

}  // namespace

/// Counts its units as inside during its lifetime: created after the permit, destroyed before it.
class Garage::Inside {
 public:
  Inside(Garage& garage, Guest& guest) : garage_(garage), units_(guest.visit.units) {
    garage_.inside_ += units_;
    guest.where = Where::inside;
    guest.entered = garage_.executor_.now();
    wire::DemoSummary& sums = garage_.sums_;
    ++sums.granted;
    sums.inside_max = std::max(sums.inside_max, garage_.inside_);
    if (garage_.inside_ > garage_.limit_) ++sums.over_limit;
  }
  ~Inside() { garage_.inside_ -= units_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Garage& garage_;
  const std::uint32_t units_;
};

/// Registers a guest from its arrival until its frame is destroyed.
class Garage::Known {
 public:
  Known(Garage& garage, std::string who) : garage_(garage), who_(std::move(who)), guest_(enter(garage, who_)) {}
  ~Known() { garage_.guests_.erase(who_); }
  Known(const Known&) = delete;
  Known& operator=(const Known&) = delete;
  Guest& guest() const noexcept { return guest_; }
  const std::string& who() const noexcept { return who_; }

 private:
  static Guest& enter(Garage& garage, const std::string& who) {
    const auto [guest, is_new] = garage.guests_.try_emplace(who);
    STINT_ASSERT(is_new && "two guests of one name");
    return guest->second;
  }

  Garage& garage_;
  std::string who_;
  Guest& guest_;
};

Garage::Garage(Executor& executor, const DemoOptions& options, double speed, Listener listener)
    : executor_(executor),
      options_(options),
      speed_(speed),
      listener_(std::move(listener)),
      begin_(executor.now()),
      semaphore_("garage", options.capacity, options_for(executor)),
      closing_time_(executor),
      limit_(options.capacity) {
  sums_.capacity_max = options.capacity;
}

Duration Garage::real(Duration scripted) const noexcept {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, Duration::period>(scripted) / speed_);
}
Duration Garage::scripted(Duration real) const noexcept {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, Duration::period>(real) * speed_);
}

// ---- The workers
// -----------------------------------------------------------------------------------------------------

Task<> Garage::run() {
  auto all_of_it = [this](Scope& scope) { return open(scope); };
  (void)co_await with_scope(std::ref(all_of_it));
}

Task<> Garage::open(Scope& scope) {
  scope.spawn(direct(scope));
  for (std::uint32_t worker = 0; worker < options_.workers; ++worker) scope.spawn(work(worker));
  co_return;
}

Task<> Garage::work(std::uint32_t worker) {
  Habits habits(options_.seed, worker);
  while (!closing_time_.cancelled()) {
    const Visit next = habits.next();
    const auto first = co_await select(sleep_for(real(next.drive)), cancelled(closing_time_));
    if (first.index() == 0) co_await come(worker_name(worker), next);
  }
}

/// Runs a visit in a scope of its own, so that it can be cancelled alone.
Task<> Garage::come(std::string who, Visit visit) {
  const Known known(*this, std::move(who));
  Guest& guest = known.guest();
  guest.visit = visit;
  guest.arrived = executor_.now();
  if (visit.patience) guest.deadline = Deadline::after(guest.arrived, real(*visit.patience));
  auto in_scope = [&](Scope& scope) {
    guest.scope = &scope;
    return park(known.who(), guest);
  };
  const Result<> end = co_await with_scope(std::ref(in_scope));
  guest.scope = nullptr;
  if (!end) tell_end(known.who(), guest, end.error());
}

Task<Result<>> Garage::park(std::string who, Guest& guest) {
  AcquireOptions request;
  request.units = guest.visit.units;
  request.priority = guest.visit.priority;
  request.label = who;
  std::optional<Permit> permit = semaphore_.try_acquire(request);
  const bool at_once = permit.has_value();
  if (!at_once) {
    const bool possible = request.units <= semaphore_.capacity() || semaphore_.capacity() == 0;
    if (possible && !semaphore_.closed()) tell(DemoEventKind::waits, who, guest, 0s);
    STINT_CO_TRY(permit, co_await semaphore_.acquire(request, guest.deadline));
  }
  {
    const Inside inside(*this, guest);
    const Duration waited = at_once ? Duration::zero() : since(guest.arrived);
    sums_.wait_max = std::max(sums_.wait_max, waited);
    tell(DemoEventKind::enters, who, guest, waited);
    co_await sleep_for(real(guest.visit.stay));
  }
  guest.where = Where::gone;
  permit->release();
  tell(DemoEventKind::leaves, who, guest, since(guest.entered));
  co_return Result<>();
}

void Garage::tell_end(const std::string& who, const Guest& guest, const Error& error) {
  const Duration took = since(guest.arrived);
  switch (error.code()) {
    case Errc::timed_out: ++sums_.gave_up; return tell(DemoEventKind::gives_up, who, guest, took);
    case Errc::invalid: ++sums_.refused; return tell(DemoEventKind::refused, who, guest, took);
    case Errc::closed: ++sums_.sent_home; return tell(DemoEventKind::sent_home, who, guest, took);
    default: return;  // cancelled: the event was already reported
  }
}

// ---- The director
// ----------------------------------------------------------------------------------------------------

Task<> Garage::direct(Scope& scope) {
  for (const Act& act : script(options_)) {
    co_await sleep_until(begin_ + real(act.at));
    caption_ = act.caption;
    co_await perform(scope, act);
  }
}

Task<> Garage::perform(Scope& scope, const Act& act) {
  Visit large;
  large.stay = kLargeStay;
  large.units = act.number;
  switch (act.kind) {
    case ActKind::say: break;
    case ActKind::large: scope.spawn(come(act.who, large)); break;
    case ActKind::cancel_line: co_await cancel_one(Where::line); break;
    case ActKind::cancel_in: co_await cancel_one(Where::inside); break;
    case ActKind::resize: co_await resize(act.number); break;
    case ActKind::whole:
      large.priority = 1;
      scope.spawn(come(act.who, large));
      co_await cancel_as_head(act.who);
      break;
    case ActKind::close:
      semaphore_.close();
      closing_time_.cancel(Reason::shutdown);
      tell(DemoEventKind::closes);
      break;
  }
}

bool Garage::cancel(const std::string& who, Where where) {
  const auto found = guests_.find(who);
  if (found == guests_.end() || found->second.where != where || found->second.scope == nullptr) return false;
  const Guest& guest = found->second;
  ++sums_.cancelled;
  tell(DemoEventKind::cancelled, who, guest, since(where == Where::inside ? guest.entered : guest.arrived));
  guest.scope->cancel(Reason::user, "called away");
  return true;
}

/// Cancels the guest that arrived first, large ones excepted: they have acts of their own.
Task<> Garage::cancel_one(Where where) {
  for (Duration looked{}; looked < kLookMost; looked += kLookAgain) {
    std::string who;
    TimePoint earliest = TimePoint::max();
    for (const auto& [name, guest] : guests_) {
      if (guest.visit.units != 1 || guest.where != where || guest.arrived >= earliest) continue;
      who = name;
      earliest = guest.arrived;
    }
    if (cancel(who, where)) co_return;
    co_await sleep_for(real(kLookAgain));
  }
}

/// Waits until `who` is first in line, with others behind it and some free space, but not enough; then cancels it.
Task<> Garage::cancel_as_head(std::string who) {
  Duration seen{};
  for (Duration looked{}; looked < 2 * kLookMost; looked += kLookAgain) {
    co_await sleep_for(real(kLookAgain));
    const auto line = semaphore_.waiters(2);
    const std::int64_t free = semaphore_.available();
    if (line.size() < 2 || line.front().label != who || free <= 0) continue;
    seen += kLookAgain;
    if (seen < kDwell && free < std::int64_t{line.front().units} - 1) continue;
    if (!cancel(who, Where::line)) co_return;
    caption_ = "… and is cancelled at the head of the line: those it held up enter in the same moment.";
    co_await sleep_for(real(kDwell));
    co_return;
  }
}

Task<> Garage::resize(std::uint32_t capacity) {
  (void)semaphore_.set_capacity(capacity);
  const std::int64_t free = semaphore_.available();
  sums_.debt_max = std::max(sums_.debt_max, static_cast<std::uint32_t>(std::max<std::int64_t>(0, -free)));
  // Grants under the old capacity may still be queued on the executor, before us: they are reported before the change.
  if (capacity < limit_) co_await yield();
  limit_ = capacity;
  tell(DemoEventKind::resized);
}

// ---- Events and views
// ------------------------------------------------------------------------------------------

void Garage::tell(DemoEventKind kind, const std::string& who, const Guest& guest, Duration took) {
  DemoEvent event;
  event.kind = kind;
  event.who = who;
  event.units = guest.visit.units;
  event.took = took;
  event.was_inside = guest.where == Where::inside;
  if (kind == DemoEventKind::waits) {
    const auto line = semaphore_.waiters();
    const auto before =
        std::ranges::count_if(line, [&](const auto& one) { return one.priority >= guest.visit.priority; });
    event.place = static_cast<std::uint32_t>(before) + 1;
  }
  tell(std::move(event));
}

void Garage::tell(DemoEventKind kind) {
  DemoEvent event;
  event.kind = kind;
  tell(std::move(event));
}

void Garage::tell(DemoEvent event) {
  event.at = since(begin_);
  event.capacity = limit_;
  event.inside = inside_;
  event.waiting = static_cast<std::uint32_t>(semaphore_.waiting());
  if (event.kind == DemoEventKind::waits) ++event.waiting;  // counts itself: it enters the line next
  sums_.line_max = std::max(sums_.line_max, event.waiting);
  listener_(event);
}

GarageView Garage::look() const {
  GarageView view;
  view.now = since(begin_);
  view.length = options_.length;
  view.capacity = semaphore_.capacity();
  view.debt = static_cast<std::uint32_t>(std::max<std::int64_t>(0, -semaphore_.available()));
  const TimePoint now = executor_.now();
  for (const Semaphore::Holder& holder : semaphore_.holders()) {
    const auto guest = guests_.find(holder.label);
    const Duration stay = guest == guests_.end() ? Duration::zero() : guest->second.visit.stay;
    view.parked.push_back({holder.label, holder.units, scripted(now - holder.since), stay});
  }
  std::ranges::sort(view.parked, std::greater{}, &GarageView::Parked::inside);
  for (const Semaphore::Waiter& waiter : semaphore_.waiters()) {
    GarageView::Waiting& entry = view.line.emplace_back();
    entry.who = waiter.label;
    entry.units = waiter.units;
    entry.waited = scripted(now - waiter.since.value_or(now));
    const auto guest = guests_.find(waiter.label);
    if (guest != guests_.end() && !guest->second.deadline.is_never()) {
      entry.patience_left = scripted(guest->second.deadline.remaining(now));
    }
  }
  view.caption = caption_;
  view.sums = summary();
  return view;
}

wire::DemoSummary Garage::summary() const {
  wire::DemoSummary sums = sums_;
  sums.took = since(begin_);
  sums.permits_out = static_cast<std::uint32_t>(std::int64_t{semaphore_.capacity()} - semaphore_.available());
  return sums;
}

}  // namespace stint::cli
