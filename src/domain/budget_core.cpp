#include "domain/budget_core.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

template <class T>
std::optional<T> less(const std::optional<T>& budget, T used) noexcept {
  return budget ? std::optional(*budget - used) : std::nullopt;
}

template <class T>
std::optional<T> smaller(const std::optional<T>& a, const std::optional<T>& b) noexcept {
  return a && b ? std::optional(std::min(*a, *b)) : a ? a : b;
}

/// The first resource whose amount is bounded and `matches`.
template <class Matches>
std::optional<Resource> first(const BudgetSpec& amounts, Matches matches) noexcept {
  if (amounts.time && matches(amounts.time->count())) return Resource::time;
  if (amounts.attempts && matches(*amounts.attempts)) return Resource::attempts;
  if (amounts.tokens && matches(*amounts.tokens)) return Resource::tokens;
  if (amounts.cost_micros && matches(*amounts.cost_micros)) return Resource::cost;
  return std::nullopt;
}

}  // namespace

Use& Use::operator+=(const Use& more) noexcept {
  tokens += more.tokens;
  cost_micros += more.cost_micros;
  attempts += more.attempts;
  time += more.time;
  return *this;
}

Use& Use::operator-=(const Use& less) noexcept {
  tokens -= less.tokens;
  cost_micros -= less.cost_micros;
  attempts -= less.attempts;
  time -= less.time;
  return *this;
}

Use use_of(const Usage& usage) noexcept { return {.tokens = usage.tokens(), .cost_micros = usage.cost_micros}; }

BudgetSpec left(const BudgetSpec& budget, const Use& used) noexcept {
  return {.time = less(budget.time, used.time),
          .attempts = less(budget.attempts, used.attempts),
          .tokens = less(budget.tokens, used.tokens),
          .cost_micros = less(budget.cost_micros, used.cost_micros)};
}

BudgetSpec tighter(const BudgetSpec& a, const BudgetSpec& b) noexcept {
  return {.time = smaller(a.time, b.time),
          .attempts = smaller(a.attempts, b.attempts),
          .tokens = smaller(a.tokens, b.tokens),
          .cost_micros = smaller(a.cost_micros, b.cost_micros)};
}

std::optional<Resource> used_up(const BudgetSpec& budget, const Use& used) noexcept {
  return first(left(budget, used), [](std::int64_t rest) { return rest <= 0; });
}

std::optional<Resource> exceeded(const BudgetSpec& budget, const Use& used) noexcept {
  return first(left(budget, used), [](std::int64_t rest) { return rest < 0; });
}

std::optional<BudgetSpec> shared_part(const BudgetSpec& budget) noexcept {
  if (!budget.tokens && !budget.cost_micros) return std::nullopt;
  return BudgetSpec{.tokens = budget.tokens, .cost_micros = budget.cost_micros};
}

std::uint32_t attempts_of(const BudgetSpec& budget) noexcept {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(budget.attempts.value_or(kAttemptsDefault), 1, kAttemptsMax));
}

}  // namespace stint::domain
