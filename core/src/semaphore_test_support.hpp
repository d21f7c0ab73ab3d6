/// Shared by the semaphore's tests: `Line`, one semaphore on a simulator, whose waiters enter one at a time and whose
/// permits the test releases by name. Its destructor expects every unit to be returned.
#pragma once

#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>

namespace stint {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Sanitizer builds are 5 to 20 times slower and run a tenth.
constexpr int rounds(int count) { return kSanitized ? count / 10 : count; }

/// Runs over many seeds: a bug may show only in some orders. STINT_SEED=17 runs that seed alone.
template <class Body>
void for_seeds(std::uint64_t count, Body body) {
  const char* const only = std::getenv("STINT_SEED");
  std::uint64_t seed = only != nullptr ? std::strtoull(only, nullptr, 10) : 0;
  for (const std::uint64_t end = only != nullptr ? seed + 1 : count; seed < end; ++seed) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, "seed " + std::to_string(seed));
    body(seed);
    if (testing::Test::HasFailure()) return;
  }
}

inline Semaphore::Options bypass(std::uint32_t max) {
  Semaphore::Options options;
  options.bypass_max = max;
  return options;
}
inline Semaphore::Options passed_over(std::uint32_t max) {
  Semaphore::Options options;
  options.passed_over_max = max;
  return options;
}

/// An executor that always sleeps, so that every post needs a wake-up. Every wake-up, between two batches or after the
/// end, lets a test do what another thread could do at that time.
class SleepyExecutor final : public Executor {
 public:
  ~SleepyExecutor() {
    mark_closing();
    abandon_all();
  }
  [[nodiscard]] bool post_elsewhere(Runnable& runnable) noexcept override {
    if (!closing()) ready_.push_back(&runnable);
    return !closing();
  }
  void wake() noexcept override {
    ++wakes;
    if (const auto act = on_wake) act();  // a copy: it may replace itself
  }
  TimePoint now() const noexcept override { return {}; }
  void run_ready() {
    while (!ready_.empty()) {
      Runnable* const runnable = ready_.front();
      ready_.pop_front();
      const Running running(*this);
      runnable->run();
    }
  }
  std::function<void()> on_wake;
  int wakes = 0;

 private:
  std::deque<Runnable*> ready_;
};

struct Line {
  explicit Line(std::int64_t capacity, std::uint64_t seed = 0, const Semaphore::Options& options = Semaphore::Options())
      : semaphore("slots", capacity, options), sim(seed) {}
  /// For tests that check the order of grants in the log.
  Line(std::int64_t capacity, Simulator::Order order, const Semaphore::Options& options = Semaphore::Options())
      : semaphore("slots", capacity, options), sim(0, order) {}
  ~Line() {
    for (auto& [name, scope] : scopes) scope->cancel();
    permits.clear();
    sim.settle();
    EXPECT_EQ(semaphore.waiting(), 0u);
    EXPECT_EQ(semaphore.available(), semaphore.capacity());
  }

  /// Acquires, and keeps the permit in `permits`. In the log "a" is a grant, "a: closed" a failure, "a: stopped" a
  /// stop.
  void enter(const std::string& name, std::uint32_t units = 1) { start(name, wait(name, semaphore.acquire(units))); }
  void enter_until(const std::string& name, TimePoint deadline, std::uint32_t units = 1) {
    start(name, wait(name, semaphore.acquire_until(deadline, units)));
  }
  void enter_as(const std::string& name, int priority, std::uint32_t units = 1) {
    AcquireOptions options;
    options.units = units;
    options.priority = priority;
    start(name, wait(name, semaphore.acquire(options)));
  }
  void start(const std::string& name, Task<> task) {
    auto& scope = scopes[name] = std::make_unique<RootScope>(sim);
    scope->spawn(std::move(task));
    sim.run_ready();
  }

  template <class Wait>
  Task<> wait(std::string name, Wait acquire) {
    struct Stopped {
      ~Stopped() {
        if (!name.empty()) log.push_back(name + ": stopped");
      }
      Log& log;
      std::string name;
    } stopped{log, name};
    Result<Permit> permit = co_await acquire;
    stopped.name.clear();
    log.push_back(permit ? name : name + ": " + std::string(to_string(permit.error().code())));
    if (permit) permits[name] = std::move(*permit);
  }

  void cancel(const std::string& name) { scopes.at(name)->cancel(); }
  /// Releases the permit of `name`; a waiter granted by that has not run yet.
  void give_back(const std::string& name) { EXPECT_EQ(permits.erase(name), 1u) << name << " holds nothing"; }
  void run() { sim.run_ready(); }
  /// Grants every waiter in turn: first `holder` releases, then each granted one. Returns the order.
  Log serve_all_after(std::string holder) {
    Log served;
    while (semaphore.waiting() > 0) {
      news();
      give_back(holder);
      run();
      if (log.size() != 1) return log;
      served.push_back(holder = log[0]);
    }
    return served;
  }
  /// The log since the last call.
  Log news() { return std::exchange(log, {}); }

  Log log;
  Semaphore semaphore;
  std::map<std::string, Permit> permits;
  Simulator sim;
  std::map<std::string, std::unique_ptr<RootScope>> scopes;
};

}  // namespace stint
