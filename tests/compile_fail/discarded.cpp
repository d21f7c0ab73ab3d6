// A discarded result is a warning, and with -Werror an error: returned or awaited, from a task or from a wait.
//
// MISTAKE 1: ignoring return value
// MISTAKE 2: ignoring return value
// MISTAKE 3: ignoring return value
// MISTAKE 4: ignoring return value
// MISTAKE 5: ignoring return value
#include "stint/combinators.hpp"
#include "stint/semaphore.hpp"

using namespace stint;

Task<Result<>> work();
Task<int> count();
Task<> nap();

Task<> program(Semaphore& slots) {
  (void)co_await slots.acquire();
  (void)co_await work();
  co_await sleep_for(Duration(1));
  co_await race(nap(), nap());  // without results it may not matter which came first
#if MISTAKE == 1
  co_await slots.acquire();
#elif MISTAKE == 2
  co_await work();
#elif MISTAKE == 3
  slots.set_capacity(3);
#elif MISTAKE == 4
  co_await with_deadline(Deadline(), work());
#elif MISTAKE == 5
  co_await race(work(), count());
#endif
}
