/// Shared by the tests.
#pragma once

#include "stint/scope.hpp"
#include "stint/semaphore.hpp"

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
inline Task<> hold(Semaphore& semaphore, Log& log, std::string name, std::uint32_t units = 1) {
  auto permit = co_await semaphore.acquire(units);
  log.push_back(name + (permit ? "+" : "!"));
  co_await sleep_until(TimePoint(1h));
}

}  // namespace stint
