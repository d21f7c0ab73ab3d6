// Using several cores: a reactor on each of four threads, one shared semaphore, and a pool for blocking code.
//
// An executor and everything that runs on it belong to one thread. There is no thread pool that resumes any ready
// coroutine: each thread has a reactor, `run_on` runs a task there, and shared objects are thread-safe.
// [threads]
#include "stint/asio.hpp"
#include "stint/offload.hpp"
#include "stint/reactor_thread.hpp"
#include "stint/run_on.hpp"

#include <array>
#include <atomic>
#include <cstdio>

using namespace stint;

/// Runs on another thread: `slots` is shared between threads, everything else is local.
Task<Result<int>> add_up(Semaphore& slots, int from, int to) {
  STINT_CO_TRY(const Permit permit, co_await slots.acquire());
  int sum = 0;
  for (int i = from; i < to; ++i) sum += i;
  co_return sum;
}

Task<Result<int>> add_up_on(ReactorThread& thread, Semaphore& slots, int from, int to) {
  co_return co_await run_on(thread.executor(),
                            add_up(slots, from, to));  // cancelling the caller ends the task there first
}

Task<Result<int>> program(std::array<ReactorThread, 4>& threads, Semaphore& slots, BlockingPool& files) {
  std::vector<Task<Result<int>>> shares;
  for (int i = 0; i < 4; ++i) shares.push_back(add_up_on(threads.at(i), slots, 250 * i, 250 * (i + 1)));
  STINT_CO_TRY(const std::vector<int> sums, co_await all(std::move(shares)));
  int sum = 0;
  for (const int each : sums) sum += each;

  // Blocking code would stall everything on this thread: it runs on a pool of threads, at most two calls at a time.
  const auto print = [sum] { return std::printf("the sum of 0 … 999 is %d\n", sum); };
  STINT_CO_TRY(const int printed, co_await offload(files, print));
  co_return printed > 0 && sum == 499'500 ? 0 : 1;  // the exit status
}

int main() {
  Semaphore slots("slots", 2);
  BlockingPool files("files", 2);
  std::array<ReactorThread, 4> threads;
  return run_main(program(threads, slots, files));
}
// [/threads]
