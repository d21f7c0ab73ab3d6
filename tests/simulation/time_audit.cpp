#include "time_audit.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace stint::simulation {
namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::RunState;

constexpr Duration kTickMost = 2min;  // until a tick detects that the machine slept: some processes are cut off
constexpr Duration kRounding = 5ms;   // for each event
constexpr Duration kBackoffMost =
    40s;  // a retry that does not fit expires at once: of its back-off only the bound is known
constexpr Duration kStopMost = 3min;  // until a frozen or cut-off owner is detected, and its work has ended

std::string seconds(Duration duration) {
  return std::to_string(std::chrono::duration<double>(duration).count()) + " s";
}

}  // namespace

Duration SimClocks::awake_at(Duration elapsed) const {
  Duration asleep{};
  for (const auto& [when, length] : sleeps_) asleep += std::clamp(elapsed - when, Duration::zero(), length);
  return elapsed - asleep;
}

std::optional<Duration> SimClocks::woke_from(Duration from, Duration to) const {
  std::optional<Duration> woke;
  for (const auto& [when, length] : sleeps_) {
    if (when < to && when + length > from) woke = when + length;
  }
  return woke;
}

domain::System SimClocks::system(std::function<std::uint64_t()> random, Duration skew) const {
  return {.wall_now = [this, skew] { return wall() + std::chrono::floor<std::chrono::milliseconds>(skew); },
          .random = std::move(random),
          .elapsed = [this] { return elapsed(); },
          .awake = [this] { return awake(); },
          .boot = "simulated"};
}

// ---- pauses --------------------------------------------------------------------------------------------------------

void WatchedStore::note_pause(const std::string& limit, std::optional<Duration> length) {
  const Duration now = clocks_.elapsed();
  std::vector<Pause>& all = pauses_[limit];
  const std::optional<Duration> until = length ? std::optional(now + *length) : std::nullopt;
  if (all.empty() || (all.back().until && *all.back().until <= now)) {
    all.push_back({now, until});
  } else if (all.back().until) {
    all.back().until = until ? std::optional(std::max(*all.back().until, *until)) : std::nullopt;
  }
}

Task<Result<>> WatchedStore::pause(std::string limit, std::optional<Duration> length) {
  note_pause(limit, length);
  return MemoryStore::pause(std::move(limit), length);
}

Task<Result<std::uint64_t>> WatchedStore::resume(std::string limit) {
  std::vector<Pause>& all = pauses_[limit];
  const Duration now = clocks_.elapsed();
  if (!all.empty() && (!all.back().until || *all.back().until > now)) all.back().until = now;
  return MemoryStore::resume(std::move(limit));
}

Task<Result<std::vector<std::optional<RunState>>>> WatchedStore::settle(store::NodeNumber node,
                                                                        std::vector<store::Settlement> settlements) {
  const std::vector<store::Settlement> asked = settlements;
  auto states = co_await MemoryStore::settle(node, std::move(settlements));
  for (std::size_t i = 0; states && i < asked.size(); ++i) {
    const bool parks = asked[i].settle == domain::Settle::park && !asked[i].park_on.empty();
    if ((*states)[i] && parks) note_pause(asked[i].park_on, asked[i].park_for);
  }
  co_return states;
}

Duration WatchedStore::open_between(const std::string& limit, Duration from, Duration to) const {
  Duration open = clocks_.awake_at(to) - clocks_.awake_at(from);
  const auto found = pauses_.find(limit);
  if (found == pauses_.end()) return open;
  for (const Pause& pause : found->second) {
    const Duration begin = std::max(pause.from, from), end = std::min(pause.until.value_or(to), to);
    if (begin < end) open -= clocks_.awake_at(end) - clocks_.awake_at(begin);
  }
  return open;
}

bool WatchedStore::is_vague_between(const std::string& limit, Duration from, Duration to) const {
  const auto found = pauses_.find(limit);
  if (found == pauses_.end()) return false;
  return std::ranges::any_of(found->second, [&](const Pause& pause) {
    const auto woke = clocks_.woke_from(pause.from, pause.until.value_or(to));
    return pause.from < to && woke && *woke + kTickMost > from;
  });
}

// ---- budgets -------------------------------------------------------------------------------------------------------

namespace {

/// A time budget and its usage.
struct Meter {
  Duration budget{};
  bool counts = false;
  Duration used{}, charged{};  ///< `charged`: the part that the store must have charged
};

std::string describe(const Meter& meter) { return seconds(meter.charged) + " of " + seconds(meter.budget); }

}  // namespace

std::string audit_budget(const BudgetFacts& run, const std::vector<store::Event>& events, const WatchedStore& store,
                         const SimClocks& clocks) {
  Meter own{.budget = run.budget};
  Meter above{.budget = run.left_above.value_or(Duration::zero()), .counts = run.left_above.has_value()};
  const std::array<Meter*, 2> meters = {&own, &above};
  Duration rounding{};
  for (std::size_t i = 0; i < events.size(); ++i) {
    const store::Event& event = events[i];
    const RunState state = event.state.value();
    rounding += kRounding;
    for (const Meter* const meter : meters) {
      if (event.cause == "claimed" && meter->counts && meter->charged >= meter->budget + rounding) {
        return run.id + " is begun when it has used " + describe(*meter);
      }
    }
    if (event.cause == "claimed" && !std::exchange(own.counts, true)) own.used = own.charged = Duration::zero();
    if (event.cause == "resolved_rerun") own.counts = above.counts = false;
    bool is_over = false;
    const Duration unknown = event.cause == "retry" ? kBackoffMost : Duration::zero();
    for (const Meter* const meter : meters) {
      if (!meter->counts) continue;
      if (meter->charged > meter->budget + rounding + kStopMost) {
        return run.id + " lives on: it has used " + describe(*meter);
      }
      is_over = is_over || meter->used + rounding + unknown >= meter->budget;
    }
    const bool counts = own.counts || above.counts;
    if (state == RunState::expired && counts && !run.has_deadline && !is_over) {
      return run.id + " expires when it has used " + describe(own) +
             (above.counts ? ", and " + describe(above) + " above it" : std::string());
    }
    if (i + 1 == events.size()) break;
    const Duration from = clocks.elapsed_at(event.at), to = clocks.elapsed_at(events[i + 1].at);
    const bool ready = state == RunState::queued && event.hold == Hold::none;
    const bool draws = state == RunState::running || state == RunState::queued;
    const Duration length = ready   ? store.open_between(run.account, from, to)
                            : draws ? clocks.awake_at(to) - clocks.awake_at(from)
                                    : Duration::zero();
    const bool surely = !ready || !store.is_vague_between(run.account, from, to);
    for (Meter* const meter : meters) {
      if (!meter->counts) continue;
      meter->used += length;
      if (surely) meter->charged += length;
    }
  }
  return {};
}

}  // namespace stint::simulation
