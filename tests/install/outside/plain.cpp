// Uses the library without Asio: six workers share three permits, in virtual time.
#include <algorithm>
#include <cstdio>
#include <stint/scope.hpp>
#include <stint/semaphore.hpp>
#include <stint/testing.hpp>

#ifdef BOOST_ASIO_VERSION
#error "a public header brought Asio in"
#endif

namespace {

using namespace std::chrono_literals;

struct Seen {
  int now = 0;
  int most = 0;
  int done = 0;
};

stint::Task<> work(stint::Semaphore& slots, Seen& seen) {
  const auto permit = co_await slots.acquire();
  if (!permit) co_return;
  seen.most = std::max(seen.most, ++seen.now);
  co_await stint::sleep_for(1h);
  --seen.now;
  ++seen.done;
}

}  // namespace

int main() {
  Seen seen;
  stint::Semaphore slots("slots", 3);
  stint::Simulator simulator;
  stint::RootScope scope(simulator);
  for (int i = 0; i < 6; ++i) scope.spawn(work(slots, seen));
  simulator.settle();
  std::printf("%d done, at most %d at once\n", seen.done, seen.most);
  return seen.done == 6 && seen.most == 3 && slots.available() == 3 ? 0 : 1;
}
