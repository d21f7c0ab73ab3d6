/// Shared by the tests.
#pragma once

#include "stint/scope.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace stint {

using namespace std::chrono_literals;
using Log = std::vector<std::string>;

struct Trace {  // logs when the frame that holds it is destroyed
  ~Trace() { log.push_back(name); }
  Log& log;
  std::string name;
};

class SlowLeaf final : public Leaf {  // like an I/O operation: completes some time after a cancel
 public:
  explicit SlowLeaf(SlowLeaf*& self) : self_(self) {}
  void await_suspend(std::coroutine_handle<>) {
    if (park()) self_ = this;
  }
  void await_resume() const noexcept {}
  void handler_ran() { complete(); }
  bool asked = false;

 private:
  void cancel() noexcept override { asked = true; }
  SlowLeaf*& self_;
};

template <class Fn>
Task<> note(Fn fn) {  // fn is a coroutine parameter: it lives in the frame
  fn();
  co_return;
}
/// Lets others run `count` times.
inline Task<int> yields(std::uint64_t count) {
  while (count-- > 0) co_await yield();
  co_return 0;
}
inline Task<int> throws() {
  co_await yield();
  throw std::runtime_error("boom");
}
inline Task<> sees_deadline(Deadline& seen) {
  seen = (co_await current_token()).deadline();
  co_return;
}
inline Task<> hold(Semaphore& semaphore, Log& log, std::string name, std::uint32_t units = 1) {
  auto permit = co_await semaphore.acquire(units);
  log.push_back(name + (permit ? "+" : "!"));
  co_await sleep_until(TimePoint(1h));
}

/// Runs over many seeds: a bug may show only in some orders.
template <class Body>
void over_seeds(Body body) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Log log;
    Simulator sim(seed);
    RootScope scope(sim);
    body(sim, scope, log);
    sim.settle();  // no destroyed object may still be queued
    ASSERT_TRUE(scope.idle());
  }
}

}  // namespace stint
