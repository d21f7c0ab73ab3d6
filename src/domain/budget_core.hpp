/// The rule of all budgets: time, attempts, tokens and cost; of a run, of runs that share one, of a day. Pure.
///
/// Use may reach a budget, and must not exceed it. So nothing begins when nothing is left (`used_up`), and work that is
/// under way ends when use is above the budget (`exceeded`). An amount that a budget leaves out is not bounded. The
/// answer is the resource; callers make the words.
#pragma once

#include "domain/agent.hpp"
#include "domain/usage.hpp"
#include "stint/budget.hpp"

#include <cstdint>
#include <optional>

namespace stint::domain {

/// Of a budget that does not say it.
inline constexpr std::int64_t kAttemptsDefault = 3;
inline constexpr std::int64_t kAttemptsMax = 1000;

/// What was used of a budget: by an attempt, by a run, or by all that share it. Stores add up tokens and cost; time and
/// attempts are counted for each run alone.
struct Use {
  std::int64_t tokens = 0, cost_micros = 0;
  std::int64_t attempts = 0;
  Duration time{};

  Use& operator+=(const Use& more) noexcept;
  Use& operator-=(const Use& less) noexcept;
  friend Use operator+(Use use, const Use& more) noexcept { return use += more; }
  friend Use operator-(Use use, const Use& less) noexcept { return use -= less; }
  friend bool operator==(const Use&, const Use&) = default;
};

[[nodiscard]] Use use_of(const Usage& usage) noexcept;

/// What is left of each bounded resource; below zero where it is exceeded.
[[nodiscard]] BudgetSpec left(const BudgetSpec& budget, const Use& used) noexcept;
/// The smaller bound of each resource.
[[nodiscard]] BudgetSpec tighter(const BudgetSpec& a, const BudgetSpec& b) noexcept;
/// The first resource of which nothing is left. None: more may begin.
[[nodiscard]] std::optional<Resource> used_up(const BudgetSpec& budget, const Use& used = {}) noexcept;
/// The first resource of which more was used than there was. None: what is under way may go on.
[[nodiscard]] std::optional<Resource> exceeded(const BudgetSpec& budget, const Use& used) noexcept;

/// The part on which several runs draw together: tokens and cost. None: the budget bounds neither.
[[nodiscard]] std::optional<BudgetSpec> shared_part(const BudgetSpec& budget) noexcept;
/// How many attempts a run with that budget has, from 1 to kAttemptsMax.
[[nodiscard]] std::uint32_t attempts_of(const BudgetSpec& budget) noexcept;

}  // namespace stint::domain
