#include "playground/presets/lessons.hpp"

namespace stint::playground::lesson {

using namespace std::chrono_literals;

// [show]
struct Handles {
  Permit permit;
  MutexGuard guard;
};

static Task<Result<>> own(Semaphore& door, Mutex& lock, Handles& handles) {
  STINT_CO_TRY(handles.permit, co_await door.acquire({.label = "owner"}));  //@ waits granted door
  STINT_CO_TRY(handles.guard, co_await lock.lock({.label = "owner"}));      //@ waits granted lock
  co_await sleep_for(2s);
  co_return co_await handles.guard.unlock();  // by its owner: granted //@ released lock
}

static Task<Result<>> meddle(Handles& handles) {
  co_await sleep_for(1s);
  handles.permit.release();                   // a semaphore counts; it has no owner //@ released door
  co_return co_await handles.guard.unlock();  // a mutex has one: denied //@ refused
}

void stranger_releases(Stage& stage) {
  Semaphore& door = stage.semaphore("door", 1);
  Mutex& lock = stage.mutex("lock");
  Handles handles;
  stage.spawn("owner", own(door, lock, handles));
  stage.spawn("stranger", meddle(handles));
  stage.run();
}
// [/show]

}  // namespace stint::playground::lesson
