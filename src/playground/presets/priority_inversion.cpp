#include "playground/presets/lessons.hpp"

namespace stint::playground::lesson {

using namespace std::chrono_literals;

// [show]
static auto take(Semaphore& lock, const std::string& name, int priority) {
  return lock.acquire({.priority = priority, .label = name});  //@ waits granted door
}
static auto take(Mutex& lock, const std::string& name, int priority) {
  return lock.lock({.priority = priority, .label = name});  //@ waits granted lock
}

static Task<> compute(Semaphore& processor, std::string name, int priority, Duration time) {
  const Result<Permit> permit =
      co_await processor.acquire({.priority = priority, .label = name});  //@ waits granted processor
  co_await sleep_for(time);
}  //@ released processor

template <class Lock>
static Task<> low(Semaphore& processor, Lock& lock, std::string name) {
  const auto held = co_await take(lock, name, -1);
  co_await compute(processor, name, -1, 1s);
}  //@ released low: door lock

template <class Lock>
static Task<> high(Lock& lock, std::string name) {
  co_await sleep_for(1s);
  const auto held = co_await take(lock, name, 3);
  co_await sleep_for(1s);
}  //@ released high: door lock

template <class Lock>
static void scene(Stage& stage, Semaphore& processor, Lock& lock, const std::string& number) {
  stage.spawn("middle-a" + number, compute(processor, "middle-a" + number, 0, 10s));
  stage.spawn("low" + number, low(processor, lock, "low" + number));
  stage.spawn("high" + number, high(lock, "high" + number));
  stage.spawn("middle-b" + number, compute(processor, "middle-b" + number, 0, 10s));
  stage.spawn("middle-c" + number, compute(processor, "middle-c" + number, 0, 10s));
  stage.advance(40s);
}

void priority_inversion(Stage& stage) {
  Semaphore& door = stage.semaphore("door", 1);
  Mutex& lock = stage.mutex("lock");
  Semaphore& processor = stage.semaphore("processor", 1);
  scene(stage, processor, door, "1");  // high waits for low, and low for all in the middle
  scene(stage, processor, lock, "2");  // low inherits the priority of high, and goes first
}
// [/show]

}  // namespace stint::playground::lesson
