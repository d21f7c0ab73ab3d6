/// `Budget`: what a piece of work may still use up of time, attempts, tokens and money. Everything beneath a scope
/// draws on the same one.
///
/// *Counts* are reserved before they are used and settled with what was really used: `reserve` takes all of it or
/// nothing, in one step, so any number of threads together never reserve more than there is. What costs more than was
/// reserved is charged all the same; then nothing is left until a reservation comes home.
/// *Time* runs from the first `start`. While the budget is paused (parked) its clock stands still.
/// `split` carves a child out: what it bounds is taken from the parent at once and the rest returns when the child is
/// settled or destroyed; what it does not bound it shares with the parent. A child's overrun is the parent's at once.
/// Thread-safe, but for moving and destroying. Nothing here waits or looks at a clock.
#pragma once

#include "stint/deadline.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

namespace stint {

enum class Resource : std::uint8_t { time, attempts, tokens, money };
[[nodiscard]] std::string_view to_string(Resource resource) noexcept;

/// An amount of what can be counted. Never negative.
struct Spend {
  std::int64_t attempts = 0;
  std::int64_t tokens = 0;
  std::int64_t money_micros = 0;  ///< millionths of the currency's unit: 2.50 is 2'500'000

  friend bool operator==(const Spend&, const Spend&) = default;
};

/// How much there is, or is left, of each resource. By default there is no bound.
struct Allowance {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  static constexpr Duration kUnlimitedTime = Duration::max();

  Duration time = kUnlimitedTime;
  std::int64_t attempts = kUnlimited;
  std::int64_t tokens = kUnlimited;
  std::int64_t money_micros = kUnlimited;

  friend bool operator==(const Allowance&, const Allowance&) = default;
};

class Reservation;

class Budget {
 public:
  /// A single amount above this is refused as a mistake (a cost in the wrong unit), or cut to it when it is settled.
  static constexpr std::int64_t kAmountMax = std::int64_t{1} << 48;
  /// How deep splits may nest: far beyond what agents that start agents reach (20 hops).
  static constexpr int kDepthMax = 64;

  Budget() : Budget(Allowance()) {}
  /// Negative bounds count as zero.
  explicit Budget(const Allowance& allowance);
  Budget(Budget&&) noexcept = default;
  Budget& operator=(Budget&& other) noexcept;
  /// Settles. What is still reserved beneath settles later, with the parent.
  ~Budget() { settle(); }

  /// Takes `amount`, all or nothing. `Errc::exhausted` names the resource and how much is missing.
  Result<Reservation> reserve(const Spend& amount);
  /// Reserves and uses in one step.
  Result<> spend(const Spend& amount);
  /// A child with bounds of its own, carved out of what is left here. `Errc::exhausted` if that is less.
  /// A child's time is never more than its parent's, whatever it asks for.
  Result<Budget> split(const Allowance& allowance);
  /// Gives the rest back to the parent. From here on this budget and those beneath it refuse with `Errc::closed`.
  void settle() noexcept;

  /// The first call sets the clock going, here and above. Gives the deadline as `deadline` does.
  Deadline start(TimePoint now) noexcept;
  /// Parked: the clock stands still, here and beneath. One state, not a count: the second pause changes nothing.
  void pause(TimePoint now) noexcept;
  void resume(TimePoint now) noexcept;
  /// When the time is up if nobody pauses: ask again after a pause. The earliest of its own and its ancestors'.
  [[nodiscard]] Deadline deadline(TimePoint now) const noexcept;

  /// What is left, never below zero; of what it shares with its parent, what the parent has left.
  [[nodiscard]] Allowance remaining(TimePoint now) const noexcept;
  /// What was used here and beneath.
  [[nodiscard]] Spend spent() const noexcept;

 private:
  friend class Reservation;
  class Node;
  explicit Budget(std::shared_ptr<Node> node) noexcept : node_(std::move(node)) {}

  std::shared_ptr<Node> node_;  // its other owners: reservations and children, which may outlive this handle
};

/// A claim on a budget. Settle it with what was really used; destroyed without that, it returns all of it.
class [[nodiscard]] Reservation {
 public:
  Reservation() noexcept = default;  ///< of nothing
  Reservation(Reservation&& other) noexcept = default;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { settle(Spend()); }

  /// Charges `actual`, more or less than was reserved, and ends the claim. The second call does nothing.
  void settle(const Spend& actual) noexcept;
  /// What is claimed; nothing once it is settled.
  [[nodiscard]] Spend amount() const noexcept { return node_ ? amount_ : Spend(); }

 private:
  friend class Budget;
  Reservation(std::shared_ptr<Budget::Node> node, const Spend& amount) noexcept
      : node_(std::move(node)), amount_(amount) {}

  std::shared_ptr<Budget::Node> node_;  // its other owner: the budget; the claim may outlive that
  Spend amount_;
};

}  // namespace stint
