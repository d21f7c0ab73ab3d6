#include "playground/presets/lessons.hpp"

namespace stint::playground::lesson {

using namespace std::chrono_literals;

// [show]
static Task<> visit(Semaphore& garage, std::string name, std::uint32_t units, Duration arrives, Duration stays) {
  co_await sleep_for(arrives);
  const Result<Permit> permit =
      co_await garage.acquire({.units = units, .label = name});  //@ waits granted left refused
  co_await sleep_for(stays);
}  //@ released

static void scene(Stage& stage, Semaphore& garage, const std::string& number) {
  for (int i = 0; i < 6; ++i) {  // one arrives each second and stays for almost two: a space is always taken
    const std::string name = "small-" + std::string(1, static_cast<char>('a' + i)) + number;
    stage.spawn(name, visit(garage, name, 1, 100ms + i * 1000ms, 1900ms));
  }
  stage.spawn("large" + number, visit(garage, "large" + number, 2, 600ms, 1s));
  stage.advance(12s);
}

void large_request(Stage& stage) {
  Semaphore& unfair = stage.semaphore("unfair", 2, 100);  // up to 100 may overtake a head that does not fit
  Semaphore& fair = stage.semaphore("fair", 2);           // none may
  scene(stage, unfair, "1");
  scene(stage, fair, "2");
}
// [/show]

}  // namespace stint::playground::lesson
