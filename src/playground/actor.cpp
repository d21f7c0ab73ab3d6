#include "playground/actor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace stint::playground {
namespace {

/// Shows what a task does for as long as it does it, also if it is cancelled meanwhile.
class Doing {
 public:
  Doing(TaskState& state, TaskState now) noexcept : state_(state) { state_ = now; }
  ~Doing() { state_ = TaskState::idle; }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  TaskState& state_;
};

}  // namespace

std::string_view to_string(TaskState state) noexcept {
  switch (state) {
    case TaskState::idle: return "idle";
    case TaskState::waiting: return "waiting";
    case TaskState::holding: return "holding";
    case TaskState::working: return "working";
    case TaskState::cancelled: return "cancelled";
  }
  std::unreachable();
}

/// Lets others see what the task holds while its frame exists.
class Actor::Shown {
 public:
  Shown(Hands*& where, Hands& hands) noexcept : where_(where) { where_ = &hands; }
  ~Shown() { where_ = nullptr; }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

 private:
  Hands*& where_;
};

Actor::Actor(Stage& stage, std::string name, Find find)
    : stage_(stage), name_(std::move(name)), find_(std::move(find)), scope_(stage.spawn(name_, run())) {}

void Actor::tell(Action action) {
  queue_.push_back(std::move(action));
  told_.notify();
}

TaskState Actor::state() const noexcept {
  if (is_cancelled()) return TaskState::cancelled;
  if (doing_ != TaskState::idle) return doing_;
  const bool holds = hands_ != nullptr && !std::ranges::all_of(*hands_ | std::views::values, &Hand::is_empty);
  return holds ? TaskState::holding : TaskState::idle;
}

Task<> Actor::run() {
  Hands hands;
  const Shown shown(hands_, hands);
  while (true) {
    while (queue_.empty()) co_await told_.wait(told_.count());
    Action next = std::move(queue_.front());
    queue_.pop_front();
    const Result<> done = co_await perform(std::move(next));
    if (done) continue;
    error_ = done.error().what();
    stage_.failed(name_, done.error());
  }
}

Task<Result<>> Actor::perform(Action action) {
  switch (action.verb) {
    case Verb::acquire: co_return co_await acquire(action);
    case Verb::release: co_return co_await release(action);
    case Verb::return_units: {
      co_return (*hands_)[action.resource].permit.release(action.units);
    }
    case Verb::discard: {
      auto& leases = (*hands_)[action.resource].leases;
      if (leases.empty()) co_return fail(holds_nothing(name_, action.resource));
      leases.back().discard();
      leases.pop_back();
      co_return Result<>();
    }
    case Verb::work: {
      const Doing working(doing_, TaskState::working);
      co_await sleep_for(action.time);
      co_return Result<>();
    }
    case Verb::stream: {
      const Doing working(doing_, TaskState::working);
      co_await read_stream(action);
      co_return Result<>();
    }
    default: co_return Result<>();  // the other verbs are not the task's own
  }
}

Task<Result<>> Actor::acquire(const Action& action) {
  const Doing waiting(doing_, TaskState::waiting);
  Resource& resource = stage_.resource(action.resource);
  Hand& hand = (*hands_)[action.resource];
  const Deadline deadline =
      action.timeout ? Deadline::after(stage_.executor().now(), *action.timeout) : Deadline::never();
  switch (resource.kind) {
    case Kind::semaphore: {
      AcquireOptions request;
      request.units = action.units;
      request.priority = action.priority;
      request.label = name_;
      STINT_CO_TRY(Permit permit, co_await resource.semaphore->acquire(request, deadline));
      co_return hand.permit.merge(std::move(permit));
    }
    case Kind::mutex: {
      LockOptions request;
      request.priority = action.priority;
      request.label = name_;
      request.deadline = deadline;
      STINT_CO_TRY(hand.guard, co_await resource.mutex->lock(request));
      co_return Result<>();
    }
    case Kind::pool:
      if (deadline.is_never()) co_return co_await borrow(*resource.pool, action, hand);
      co_return co_await with_deadline(deadline, borrow(*resource.pool, action, hand));
    case Kind::server: hand.connections.emplace_back(*resource.server); co_return Result<>();
  }
  std::unreachable();
}

Task<Result<>> Actor::borrow(ConnectionPool& pool, const Action& action, Hand& hand) {
  BorrowOptions request;
  request.priority = action.priority;
  request.label = name_;
  STINT_CO_TRY(auto lease, co_await pool.borrow(request));
  hand.leases.push_back(std::move(lease));
  co_return Result<>();
}

Task<Result<>> Actor::release(const Action& action) {
  const std::string& holder = action.of.empty() ? name_ : action.of;
  Actor* const other = find_(holder);
  Hands* const hands = other == nullptr ? nullptr : other->hands_;
  const auto found = hands == nullptr ? Hands::iterator() : hands->find(action.resource);
  if (hands == nullptr || found == hands->end() || found->second.is_empty()) {
    co_return fail(holds_nothing(holder, action.resource));
  }
  Hand& hand = found->second;
  hand.connections.clear();
  hand.leases.clear();
  hand.permit.release();                                   // any task may return a permit
  if (hand.guard) co_return co_await hand.guard.unlock();  // only its owner may unlock a mutex
  co_return Result<>();
}

Error Actor::holds_nothing(const std::string& task, const std::string& resource) const {
  return {Errc::invalid, fmt::format("task '{}' holds nothing of '{}'", task, resource)};
}

/// Without an owner, the producer goes on after the reader gave up.
Task<> Actor::read_stream(const Action& action) {
  const TokenMeter::Reader reader(stage_.tokens());
  const Duration patience = action.timeout.value_or(kTimeMax * kUnitsMax);
  // The second owner: a producer that nothing waits for.
  const auto done = std::make_shared<Notification>();
  if (action.owned) {
    (void)co_await with_timeout(patience, produce(action.units, action.time, done));  // late or not: it has ended
    co_return;
  }
  stage_.elsewhere().spawn(produce(action.units, action.time, done));
  (void)co_await done->wait(done->count(), patience);  // late or not
}

Task<> Actor::produce(std::uint32_t tokens, Duration each, std::shared_ptr<Notification> done) {
  for (std::uint32_t i = 0; i < tokens; ++i) {
    co_await sleep_for(each);
    stage_.tokens().count();
  }
  done->notify();
}

}  // namespace stint::playground
