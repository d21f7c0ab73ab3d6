#include "playground/presets/lessons.hpp"

namespace stint::playground::lesson {

using namespace std::chrono_literals;

// [show]
static Task<> park(Semaphore& garage, std::string name, Duration stays) {
  const Result<Permit> space = co_await garage.acquire({.label = name});  //@ waits granted left refused
  co_await sleep_for(stays);
}  //@ released

void resize_with_debt(Stage& stage) {
  Semaphore& garage = stage.semaphore("garage", 3);
  stage.spawn("a", park(garage, "a", 1s));
  stage.spawn("b", park(garage, "b", 2s));
  stage.spawn("c", park(garage, "c", 3s));
  stage.advance(500ms);
  (void)garage.set_capacity(1);                // three are inside: a debt of two; all may stay //@ resized
  stage.spawn("d", park(garage, "d", 500ms));  // enters when the debt is paid and a space is free
  stage.run();
}
// [/show]

}  // namespace stint::playground::lesson
