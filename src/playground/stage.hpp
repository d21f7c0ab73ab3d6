/// The place where a lesson happens: real semaphores, mutexes and pools on a simulator, and an observer that sees what
/// becomes of them. The C++ of a preset and a sandbox both run on one.
///
/// One thread, that of its constructor. Destroys the simulator first, and with it every frame; resources and tasks
/// after it.
#pragma once

#include "playground/action.hpp"
#include "playground/instruments.hpp"
#include "playground/observer.hpp"
#include "stint/mutex.hpp"
#include "stint/scope.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stint::playground {

/// One resource of a stage; which pointers are set depends on the kind.
struct Resource {
  std::string name;
  Kind kind;
  std::unique_ptr<Semaphore> semaphore{};
  std::unique_ptr<Mutex> mutex{};
  std::unique_ptr<Server> server{};  // of a pool too: it makes the connections of its server
  std::unique_ptr<ConnectionPool> pool{};
  std::uint32_t bypass_max = 0;
};

class Stage {
 public:
  explicit Stage(std::uint64_t seed = 0, Order order = Order::fifo);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // What a lesson is written with.
  Semaphore& semaphore(std::string name, std::uint32_t capacity, std::uint32_t bypass_max = 0);
  Mutex& mutex(std::string name);
  ConnectionPool& pool(std::string name, std::uint32_t max_size);
  Server& server(std::string name);
  TokenMeter& tokens() noexcept { return tokens_; }
  /// Starts a task in a scope of its own. A failure that it returns is an event. Not from inside a task.
  Scope& spawn(std::string task, Task<Result<>> body);
  Scope& spawn(std::string task, Task<> body);
  /// A scope that belongs to no task.
  Scope& elsewhere() noexcept { return elsewhere_; }
  void advance(Duration time);
  /// Until nothing is left to do.
  void run();

  // What a sandbox needs besides.
  [[nodiscard]] Resource& resource(std::string_view name);
  [[nodiscard]] const std::deque<Resource>& resources() const noexcept { return resources_; }
  /// Makes the semaphore anew. False if it is in use: `bypass_max` of a semaphore is fixed.
  [[nodiscard]] bool set_bypass(Resource& resource, std::uint32_t bypass_max);
  void failed(std::string task, const Error& error) { observer_.failed(std::move(task), error); }
  [[nodiscard]] Executor& executor() noexcept { return *simulator_; }
  [[nodiscard]] bool is_ready() { return simulator_->is_ready(); }
  [[nodiscard]] bool is_idle() { return simulator_->is_idle(); }
  /// The clock is on its way to the end of an `advance`.
  [[nodiscard]] bool is_advancing() const noexcept { return advancing_; }
  void begin_advance(Duration time);
  /// One step of the simulator, and a look. False if nothing is left to do.
  bool step();
  /// Something was done from outside: counts as a step.
  void did();

  [[nodiscard]] std::uint32_t steps() const noexcept { return steps_; }
  [[nodiscard]] Duration now() const noexcept { return simulator_->now() - TimePoint(); }
  [[nodiscard]] const std::vector<Event>& events() const noexcept { return observer_.events(); }

 private:
  Task<> report_failure(std::string task, Task<Result<>> body);
  Task<> pass_time(Duration time);
  Resource& add(std::string name, Kind kind);
  [[nodiscard]] std::unique_ptr<Semaphore> make_semaphore(const Resource& resource, std::uint32_t capacity) const;

  std::deque<Resource> resources_;  // a deque: what it holds is referred to
  TokenMeter tokens_;
  Observer observer_;
  std::unique_ptr<Simulator> simulator_;
  RootScope elsewhere_;
  std::deque<RootScope> scopes_;
  std::uint32_t steps_ = 0;
  bool advancing_ = false;
};

}  // namespace stint::playground
