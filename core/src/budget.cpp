// Invariants, all under the one lock of a tree of budgets:
// 1. Every count has exactly one pool: the nearest budget, from the caller upwards, that bounds it and is not settled;
// else the root. Only the pool's `used` and `held` change.
// 2. A pool that is not the root is held in its parent's pool with `taken()`, which is its bound, or more if it has
// overrun. So the parent sees an overrun at once, and never a smaller bound.
// 3. `used + held <= bound` unless there is an overrun: reserve() and split() check and take under one lock.
#include "stint/budget.hpp"

#include "stint/assert.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <utility>

namespace stint {

namespace {

constexpr std::size_t kCounts = 3;
constexpr std::array kResources = {Resource::attempts, Resource::tokens, Resource::cost};
using Counts = std::array<std::int64_t, kCounts>;

Counts counts(const Spend& spend) noexcept { return {spend.attempts, spend.tokens, spend.cost_micros}; }
Counts counts(const Allowance& allowance) noexcept {
  return {allowance.attempts, allowance.tokens, allowance.cost_micros};
}

/// Saturating sum; real values stay far below the limits of the type.
std::int64_t add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

std::string amount_text(Resource resource, std::int64_t amount) {
  const std::string number = std::to_string(amount);
  switch (resource) {
    case Resource::time: break;
    case Resource::attempts: return number + " attempts";
    case Resource::tokens: return number + " tokens";
    case Resource::cost: return number + " micro-units of cost";
  }
  return number;
}

Error exhausted(Resource resource, std::int64_t wanted, std::int64_t left) {
  std::string what = "the budget is exhausted: " + amount_text(resource, wanted) + " wanted, ";
  what += std::to_string(left) + " left, " + std::to_string(wanted - left) + " missing";
  return {Errc::exhausted, std::move(what)};
}

Error out_of_range(Resource resource, std::int64_t amount) {
  return {Errc::invalid, amount_text(resource, amount) + " is out of range for a budget: 0 to " +
                             std::to_string(Budget::kAmountMax) + " can"};
}

}  // namespace

std::string_view to_string(Resource resource) noexcept {
  switch (resource) {
    case Resource::time: return "time";
    case Resource::attempts: return "attempts";
    case Resource::tokens: return "tokens";
    case Resource::cost: return "cost";
  }
  return "unknown";
}

class Budget::Node {
 public:
  Node(std::shared_ptr<Node> parent, const Allowance& allowance)
      : parent_(std::move(parent)),
        root_(parent_ ? parent_->root_ : this),
        depth_(parent_ ? parent_->depth_ + 1 : 0),
        time_(std::max(allowance.time, Duration::zero())) {
    const Counts bounds = counts(allowance);
    for (std::size_t i = 0; i < kCounts; ++i) pools_[i].bound = std::max(bounds[i], std::int64_t{0});
  }

  std::unique_lock<std::mutex> lock() const { return std::unique_lock(root_->mutex_); }

  // Everything below is called under the lock.

  int depth() const noexcept { return depth_; }
  bool closed() const noexcept {
    for (const Node* node = this; node != nullptr; node = node->parent_.get()) {
      if (node->closed_) return true;
    }
    return false;
  }

  Result<> hold(const Counts& amounts) {
    if (closed()) return fail(Errc::closed, "the budget is settled");
    for (std::size_t i = 0; i < kCounts; ++i) {
      if (amounts[i] > 0 && amounts[i] > left(i)) return fail(exhausted(kResources[i], amounts[i], left(i)));
    }
    for (std::size_t i = 0; i < kCounts; ++i) change(i, 0, amounts[i]);
    return {};
  }
  void settle_held(const Counts& held, const Counts& used) noexcept {
    for (std::size_t i = 0; i < kCounts; ++i) {
      change(i, used[i], -held[i]);
      for (Node* node = this; node != nullptr; node = node->parent_.get()) {
        node->spent_[i] = add(node->spent_[i], used[i]);
      }
    }
  }
  void close() noexcept {
    if (std::exchange(closed_, true) || parent_ == nullptr) return;
    for (std::size_t i = 0; i < kCounts; ++i) {
      const Pool& pool = pools_[i];
      if (pool.bounded()) parent_->change(i, pool.used, pool.held - pool.taken());
    }
  }
  std::int64_t left(std::size_t i) const noexcept {
    const Pool& pool = pool_node(i)->pools_[i];
    return pool.bounded() ? std::max(pool.bound - add(pool.used, pool.held), std::int64_t{0}) : Allowance::kUnlimited;
  }
  std::int64_t spent(std::size_t i) const noexcept { return spent_[i]; }

  void start(TimePoint now) noexcept {
    for (Node* node = this; node != nullptr; node = node->parent_.get()) {
      if (!node->started_) node->started_ = node->reading(now);
    }
  }
  void pause(TimePoint now) noexcept {
    if (!stopped_at_) stopped_at_ = reading(now);
  }
  void resume(TimePoint now) noexcept {
    if (!stopped_at_) return;
    skipped_ = outer_reading(now) - *stopped_at_;
    stopped_at_.reset();
  }
  Duration time_left(TimePoint now) const noexcept {
    Duration left = Allowance::kUnlimitedTime;
    for (const Node* node = this; node != nullptr; node = node->parent_.get()) {
      if (node->time_ != Allowance::kUnlimitedTime) left = std::min(left, node->own_time_left(now));
    }
    return left;
  }

 private:
  struct Pool {
    std::int64_t bound = Allowance::kUnlimited;
    std::int64_t used = 0;
    std::int64_t held = 0;  // reserved, or split off for children
    bool bounded() const noexcept { return bound != Allowance::kUnlimited; }
    std::int64_t taken() const noexcept { return std::max(bound, add(used, held)); }
  };

  const Node* pool_node(std::size_t i) const noexcept {
    const Node* node = this;
    while (node->parent_ && (node->closed_ || !node->pools_[i].bounded())) node = node->parent_.get();
    return node;
  }
  void change(std::size_t i, std::int64_t used, std::int64_t held) noexcept {
    Node* node = this;
    while (true) {
      node = const_cast<Node*>(node->pool_node(i));
      Pool& pool = node->pools_[i];
      const std::int64_t before = pool.taken();
      pool.used = add(pool.used, used);
      pool.held = add(pool.held, held);
      used = 0;
      held = pool.taken() - before;
      if (node->parent_ == nullptr || held == 0) return;
      node = node->parent_.get();
    }
  }

  // A clock that stops while this budget or an ancestor is paused. Its origin is arbitrary.
  Duration outer_reading(TimePoint now) const noexcept {
    return parent_ ? parent_->reading(now) : now.time_since_epoch();
  }
  Duration reading(TimePoint now) const noexcept { return stopped_at_ ? *stopped_at_ : outer_reading(now) - skipped_; }
  Duration own_time_left(TimePoint now) const noexcept {
    return started_ ? std::clamp(time_ - (reading(now) - *started_), Duration::zero(), time_) : time_;
  }

  const std::shared_ptr<Node> parent_;  // its other owners: the parent's handle, its reservations, its other children
  Node* const root_;
  const int depth_;
  mutable std::mutex mutex_;  // the root's mutex protects the whole tree
  std::array<Pool, kCounts> pools_;
  Counts spent_{};
  const Duration time_;
  std::optional<Duration> started_;     // on this budget's own clock
  std::optional<Duration> stopped_at_;  // set while it is paused
  Duration skipped_{};
  bool closed_ = false;
};

Budget::Budget(const Allowance& allowance) : node_(std::make_shared<Node>(nullptr, allowance)) {}

Budget& Budget::operator=(Budget&& other) noexcept {
  Budget old(std::move(*this));
  node_ = std::move(other.node_);
  return *this;
}

Result<Reservation> Budget::reserve(const Spend& amount) {
  const Counts amounts = counts(amount);
  for (std::size_t i = 0; i < kCounts; ++i) {
    if (amounts[i] < 0 || amounts[i] > kAmountMax) return fail(out_of_range(kResources[i], amounts[i]));
  }
  const auto lock = node_->lock();
  STINT_CHECK(node_->hold(amounts));
  return Reservation(node_, amount);
}

Result<> Budget::spend(const Spend& amount) {
  STINT_TRY(Reservation reservation, reserve(amount));
  reservation.settle(amount);
  return {};
}

Result<Budget> Budget::split(const Allowance& allowance) {
  if (node_->depth() >= kDepthMax) {
    return fail(Errc::invalid, "budgets can be split at most " + std::to_string(kDepthMax) + " levels deep");
  }
  auto child = std::make_shared<Node>(node_, allowance);
  Counts carved = counts(allowance);
  for (std::int64_t& count : carved) count = count == Allowance::kUnlimited ? 0 : std::max(count, std::int64_t{0});
  const auto lock = node_->lock();
  STINT_CHECK(node_->hold(carved));
  return Budget(std::move(child));
}

void Budget::settle() noexcept {
  if (!node_) return;
  const auto lock = node_->lock();
  node_->close();
}

Deadline Budget::start(TimePoint now) noexcept {
  const auto lock = node_->lock();
  node_->start(now);
  return Deadline::after(now, node_->time_left(now));
}

void Budget::pause(TimePoint now) noexcept {
  const auto lock = node_->lock();
  node_->pause(now);
}

void Budget::resume(TimePoint now) noexcept {
  const auto lock = node_->lock();
  node_->resume(now);
}

Deadline Budget::deadline(TimePoint now) const noexcept {
  const auto lock = node_->lock();
  return Deadline::after(now, node_->time_left(now));
}

Allowance Budget::remaining(TimePoint now) const noexcept {
  const auto lock = node_->lock();
  return {.time = node_->time_left(now),
          .attempts = node_->left(0),
          .tokens = node_->left(1),
          .cost_micros = node_->left(2)};
}

Spend Budget::spent() const noexcept {
  const auto lock = node_->lock();
  return {.attempts = node_->spent(0), .tokens = node_->spent(1), .cost_micros = node_->spent(2)};
}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  Reservation old(std::move(*this));
  node_ = std::move(other.node_);
  amount_ = other.amount_;
  return *this;
}

void Reservation::settle(const Spend& actual) noexcept {
  if (!node_) return;
  Counts used = counts(actual);
  for (std::int64_t& count : used) count = std::clamp(count, std::int64_t{0}, Budget::kAmountMax);
  {
    const auto lock = node_->lock();
    node_->settle_held(counts(amount_), used);
  }
  node_.reset();  // after the lock is released: this may be the last owner of the node that holds it
}

}  // namespace stint
