// The smallest program: three workers, two permits, real time.
// [program]
#include "stint/asio.hpp"

#include <cstdio>

using namespace stint;
using namespace std::chrono_literals;

Task<Result<>> work(Semaphore& slots, int number) {
  STINT_CO_TRY(const Permit permit, co_await slots.acquire());  // waits in line
  std::printf("%d begins\n", number);
  co_await sleep_for(100ms);
  std::printf("%d ends\n", number);
  co_return Result<>();
}  // the permit is returned here, however this ends

Task<Result<>> program() {
  Semaphore slots("slots", 2);
  co_return co_await with_scope([&](Scope& scope) {
    for (int i = 1; i <= 3; ++i) scope.spawn(work(slots, i));
  });  // ends when all three have ended; the first failure stops the others
}

int main() { return run_main(program()); }
// [/program]
