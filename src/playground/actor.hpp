/// A task of a sandbox: one coroutine in a scope of its own, which does what it is told, one action after the other.
/// What it holds lives in its frame, so cancelling it returns everything, as it does for any task of the library.
///
/// The stage's thread only. Must outlive the stage's simulator.
#pragma once

#include "playground/action.hpp"
#include "playground/stage.hpp"
#include "stint/notification.hpp"

#include <deque>
#include <functional>
#include <map>
#include <string>

namespace stint::playground {

enum class TaskState : std::uint8_t { idle, waiting, holding, working, cancelled };
inline constexpr TaskState kTaskStates[] = {TaskState::idle, TaskState::waiting, TaskState::holding, TaskState::working,
                                            TaskState::cancelled};
[[nodiscard]] std::string_view to_string(TaskState state) noexcept;

class Actor {
 public:
  /// Finds another actor by name; null: there is none.
  using Find = std::function<Actor*(const std::string& task)>;

  Actor(Stage& stage, std::string name, Find find);
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  /// Queues the action behind those that it has not finished.
  void tell(Action action);
  void cancel() noexcept { scope_.cancel(Reason::user); }
  [[nodiscard]] bool is_cancelled() const noexcept { return scope_.cancelled(); }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] TaskState state() const noexcept;
  [[nodiscard]] std::size_t queued() const noexcept { return is_cancelled() ? 0 : queue_.size(); }
  /// Of the last action that failed; empty: none did.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  /// What the task has of one resource.
  struct Hand {
    Permit permit;
    MutexGuard guard;
    std::vector<ConnectionPool::Lease> leases;
    std::vector<Connection> connections;
    [[nodiscard]] bool is_empty() const noexcept { return !permit && !guard && leases.empty() && connections.empty(); }
  };
  using Hands = std::map<std::string, Hand, std::less<>>;
  class Shown;

  Task<> run();
  Task<Result<>> perform(Action action);
  Task<Result<>> acquire(const Action& action);
  Task<Result<>> borrow(ConnectionPool& pool, const Action& action, Hand& hand);
  Task<Result<>> release(const Action& action);
  Task<> read_stream(const Action& action);
  Task<> produce(std::uint32_t tokens, Duration each, std::shared_ptr<Notification> done);
  [[nodiscard]] Error holds_nothing(const std::string& task, const std::string& resource) const;

  Stage& stage_;
  const std::string name_;
  const Find find_;
  std::deque<Action> queue_;  // bounded by the actions of the sandbox
  Notification told_;
  Hands* hands_ = nullptr;  // in the frame of run(), while that exists
  TaskState doing_ = TaskState::idle;
  std::string error_;
  Scope& scope_;
};

}  // namespace stint::playground
