#include "playground/presets/lessons.hpp"

namespace stint::playground::lesson {

using namespace std::chrono_literals;

// [show]
static Task<> park(Semaphore& garage, std::string name) {
  const Result<Permit> space = co_await garage.acquire({.label = name});  //@ waits granted left refused
  co_await sleep_for(1s);
}  // the permit is destroyed: the space is free again //@ released

void three_at_two(Stage& stage) {
  Semaphore& garage = stage.semaphore("garage", 2);
  for (const char* name : {"a", "b", "c"}) stage.spawn(name, park(garage, name));
  stage.run();
}
// [/show]

}  // namespace stint::playground::lesson
