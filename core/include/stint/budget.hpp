/// `Budget`: how much time, attempts, tokens and cost a piece of work may still use. Everything beneath a scope draws
/// on the same budget.
///
/// *Counts* are reserved before use and settled with the actual usage. `reserve` is atomic, all or nothing, so any
/// number of threads together never reserve more than there is. Usage beyond a reservation is charged all the same;
/// nothing is left then until a reservation is settled with less.
/// *Time* runs from the first `start`. While the budget is paused its clock stops.
/// `split` creates a child: the amounts it bounds are taken from the parent at once, and the rest returns when the
/// child is settled or destroyed; the amounts it does not bound are shared with the parent. A child's overrun is
/// charged to the parent at once. Thread-safe, except for moving and destroying. Never waits or reads a clock.
#pragma once

#include "stint/deadline.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

namespace stint {

enum class Resource : std::uint8_t { time, attempts, tokens, cost };
[[nodiscard]] std::string_view to_string(Resource resource) noexcept;

/// An amount of the countable resources. Never negative.
struct Spend {
  std::int64_t attempts = 0;
  std::int64_t tokens = 0;
  std::int64_t cost_micros = 0;  ///< millionths of the currency's unit: 2.50 is 2'500'000

  friend bool operator==(const Spend&, const Spend&) = default;
};

/// How much of each resource there is or is left. Unlimited by default.
struct Allowance {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  static constexpr Duration kUnlimitedTime = Duration::max();

  Duration time = kUnlimitedTime;
  std::int64_t attempts = kUnlimited;
  std::int64_t tokens = kUnlimited;
  std::int64_t cost_micros = kUnlimited;

  friend bool operator==(const Allowance&, const Allowance&) = default;
};

class Reservation;

class Budget {
 public:
  /// A single amount above this is refused as a mistake (a cost in the wrong unit), or clamped to it when settled.
  static constexpr std::int64_t kAmountMax = std::int64_t{1} << 48;
  /// How deep splits may nest: far beyond the depth of nested agents (20).
  static constexpr int kDepthMax = 64;

  Budget() : Budget(Allowance()) {}
  /// Negative bounds count as zero.
  explicit Budget(const Allowance& allowance);
  Budget(Budget&&) noexcept = default;
  Budget& operator=(Budget&& other) noexcept;
  /// Settles. Reservations that are still open beneath settle later, with the parent.
  ~Budget() { settle(); }

  /// Reserves `amount`, all or nothing. `Errc::exhausted` names the resource and how much is missing.
  Result<Reservation> reserve(const Spend& amount);
  /// Reserves and uses in one step.
  Result<> spend(const Spend& amount);
  /// A child with its own bounds, taken from what is left here. `Errc::exhausted` if less is left. A child's time never
  /// exceeds its parent's.
  Result<Budget> split(const Allowance& allowance);
  /// Returns the rest to the parent. From here on this budget and those beneath it refuse with `Errc::closed`.
  void settle() noexcept;

  /// The first call starts the clock, here and in every ancestor. Returns the deadline like `deadline`.
  Deadline start(TimePoint now) noexcept;
  /// Stops the clock, here and beneath. A state, not a count: a second pause has no effect.
  void pause(TimePoint now) noexcept;
  void resume(TimePoint now) noexcept;
  /// When the time is up if there is no pause; ask again after a pause. The earliest of this budget and its ancestors.
  [[nodiscard]] Deadline deadline(TimePoint now) const noexcept;

  /// What is left, never below zero. For resources shared with the parent, what the parent has left.
  [[nodiscard]] Allowance remaining(TimePoint now) const noexcept;
  /// What was used by this budget and those beneath it.
  [[nodiscard]] Spend spent() const noexcept;

 private:
  friend class Reservation;
  class Node;
  explicit Budget(std::shared_ptr<Node> node) noexcept : node_(std::move(node)) {}

  std::shared_ptr<Node> node_;  // its other owners: reservations and children, which may outlive this handle
};

/// A claim on a budget. Settle it with the actual usage; destroyed without that, it returns the whole amount.
class [[nodiscard]] Reservation {
 public:
  Reservation() noexcept = default;  ///< empty
  Reservation(Reservation&& other) noexcept = default;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { settle(Spend()); }

  /// Charges `actual`, which may exceed the reserved amount, and ends the claim. A second call does nothing.
  void settle(const Spend& actual) noexcept;
  /// The claimed amount; zero once settled.
  [[nodiscard]] Spend amount() const noexcept { return node_ ? amount_ : Spend(); }

 private:
  friend class Budget;
  Reservation(std::shared_ptr<Budget::Node> node, const Spend& amount) noexcept
      : node_(std::move(node)), amount_(amount) {}

  std::shared_ptr<Budget::Node> node_;  // its other owner: the budget; the claim may outlive that
  Spend amount_;
};

}  // namespace stint
