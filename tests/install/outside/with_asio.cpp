// A plain Asio program, with callbacks and timers, that acquires permits through completion tokens.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stint/asio.hpp>

#if !defined(BOOST_ASIO_SEPARATE_COMPILATION) || !defined(BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE)
#error "the package did not pass on the macros under which Asio was compiled into the library"
#endif

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

struct Seen {
  int now = 0;
  int most = 0;
  int done = 0;
  int aborted = 0;
};

/// Waits for a permit, holds it for a timer's time, and releases it with the handler. A semaphore has no
/// executor of its own: the handler names the one to be called on.
void work(asio::io_context& io, stint::Semaphore& slots, Seen& seen) {
  auto granted = [&](error_code error, stint::Permit permit) {
    if (error) return;
    seen.most = std::max(seen.most, ++seen.now);
    auto timer = std::make_shared<asio::steady_timer>(io, std::chrono::milliseconds(1));
    timer->async_wait([&seen, timer, permit = std::move(permit)](error_code) {
      --seen.now;
      ++seen.done;
    });
  };
  stint::async_acquire(slots, 1, asio::bind_executor(io, granted));
}

}  // namespace

int main() {
  Seen seen;
  stint::Semaphore slots("slots", 2);
  asio::io_context io;
  for (int i = 0; i < 6; ++i) asio::post(io, [&] { work(io, slots, seen); });

  // A waiter behind them is cancelled through its slot, like any Asio operation.
  asio::cancellation_signal signal;
  asio::post(io, [&] {
    auto ended = [&](error_code error, const stint::Permit&) {
      if (error == asio::error::operation_aborted) ++seen.aborted;
    };
    stint::async_acquire(slots, 2, asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(io, ended)));
  });
  asio::post(io, [&] { signal.emit(asio::cancellation_type::terminal); });

  // A deferred one, started after everything else.
  auto later = stint::async_acquire(slots, 1, asio::as_tuple(asio::deferred));
  bool granted = false;
  asio::post(io, [&] {
    auto ended = [&](const std::tuple<error_code, stint::Permit>& result) { granted = !std::get<0>(result); };
    std::move(later)(asio::bind_executor(io, ended));
  });

  io.run();
  std::printf("%d done, at most %d at once, %d aborted, deferred %s\n", seen.done, seen.most, seen.aborted,
              granted ? "granted" : "not granted");
  return seen.done == 6 && seen.most == 2 && seen.aborted == 1 && granted && slots.available() == 2 ? 0 : 1;
}
