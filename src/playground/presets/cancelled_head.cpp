#include "playground/presets/lessons.hpp"

namespace stint::playground::lesson {

using namespace std::chrono_literals;

// [show]
static Task<> park(Semaphore& garage, std::string name, std::uint32_t units, Duration stays) {
  const Result<Permit> spaces = co_await garage.acquire({.units = units, .label = name});  //@ waits granted refused
  co_await sleep_for(stays);
}  //@ released

void cancelled_head(Stage& stage) {
  Semaphore& garage = stage.semaphore("garage", 3);
  stage.spawn("car", park(garage, "car", 1, 5s));
  Scope& bus = stage.spawn("bus", park(garage, "bus", 3, 1s));  // two spaces are free, but it needs three
  stage.spawn("bike-a", park(garage, "bike-a", 1, 1s));         // waits behind the bus
  stage.spawn("bike-b", park(garage, "bike-b", 1, 1s));
  stage.advance(1s);
  bus.cancel();  //@ left
  stage.run();
}
// [/show]

}  // namespace stint::playground::lesson
