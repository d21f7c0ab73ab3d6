/// Time in a simulated world: a machine that sleeps, a wall clock that jumps, and an auditor of time budgets that uses
/// the real times: no run expires before it has used its budget, and none begins or goes on long after that.
#pragma once

#include "domain/system.hpp"
#include "stint/testing.hpp"
#include "store/memory_store.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stint::simulation {

class SimClocks {
 public:
  explicit SimClocks(Simulator& sim) : sim_(sim) {}

  [[nodiscard]] Duration awake() const { return sim_.now().time_since_epoch(); }
  [[nodiscard]] Duration elapsed() const { return awake() + slept_; }
  [[nodiscard]] WallTime wall() const {
    return kBegin + std::chrono::floor<std::chrono::milliseconds>(elapsed() + jumped_);
  }
  void jump(Duration by) { jumped_ += by; }
  void sleep(Duration by) {
    sleeps_.emplace_back(elapsed(), by);
    slept_ += by;
  }
  /// The value of `awake` at that time.
  [[nodiscard]] Duration awake_at(Duration elapsed) const;
  /// When the last sleep that overlaps that time ended; none: there was no such sleep.
  [[nodiscard]] std::optional<Duration> woke_from(Duration from, Duration to) const;
  /// The `elapsed` time at which the wall clock, as it is set now, shows `shown`.
  [[nodiscard]] Duration elapsed_at(WallTime shown) const { return Duration(shown - kBegin) - jumped_; }

  /// `skew`: the error of the wall clock of a host.
  [[nodiscard]] domain::System system(std::function<std::uint64_t()> random, Duration skew) const;

 private:
  static constexpr WallTime kBegin{std::chrono::milliseconds(1'700'000'000'000)};

  Simulator& sim_;
  Duration slept_{}, jumped_{};
  std::vector<std::pair<Duration, Duration>> sleeps_;  // when by `elapsed`, and how long
};

/// A store that records when each limit was paused.
class WatchedStore final : public store::MemoryStore {
 public:
  WatchedStore(const domain::System& system, const SimClocks& clocks) : MemoryStore(system), clocks_(clocks) {}

  Task<Result<>> pause(std::string limit, std::optional<Duration> length) override;
  Task<Result<std::uint64_t>> resume(std::string limit) override;
  Task<Result<std::vector<std::optional<domain::RunState>>>> settle(
      store::NodeNumber node, std::vector<store::Settlement> settlements) override;

  /// How long, in awake time, the limit was not paused between these times, given by `elapsed`.
  [[nodiscard]] Duration open_between(const std::string& limit, Duration from, Duration to) const;
  /// The machine slept during or after a pause in that time: the store can't know how much of the pause it was awake,
  /// and charges the runs less rather than more.
  [[nodiscard]] bool is_vague_between(const std::string& limit, Duration from, Duration to) const;

 private:
  struct Pause {
    Duration from{};
    std::optional<Duration> until;  ///< none: the pause goes on
  };
  void note_pause(const std::string& limit, std::optional<Duration> length);

  const SimClocks& clocks_;
  std::map<std::string, std::vector<Pause>> pauses_;  // one after the other
};

/// What the auditor needs of a run besides its events.
struct BudgetFacts {
  std::string id, account;
  Duration budget{};
  bool has_deadline = false;
  std::optional<Duration> left_above;  ///< of its parent's budget, when it was accepted
};
/// What is wrong with the charged time of the run; empty: nothing.
[[nodiscard]] std::string audit_budget(const BudgetFacts& run, const std::vector<store::Event>& events,
                                       const WatchedStore& store, const SimClocks& clocks);

}  // namespace stint::simulation
