// Boost.Asio: a channel prefilled with tokens as a semaphore (acquire = async_receive, release = try_send), and its
// coroutines and timers. Executors are typed: a hand-over takes 150 ns instead of 230.
// usage: asio_sem sem.uncontended n= impl=channel|concurrent|try
//                 sem.contended threads= tasks= iters= permits=
//                 sem.waiter_mem n=      sem.cancel n= order=fifo|lifo|all
//                 spawn n=      await_child n=      sleep n=      scope.timer n=
#include "peer.hpp"

#include <boost/asio.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>

#include <deque>
#include <thread>

namespace asio = boost::asio;

namespace {

using Error = boost::system::error_code;
using Loop = asio::io_context::executor_type;
template <class T = void>
using Co = asio::awaitable<T, Loop>;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Loop>;
using Channel = asio::experimental::basic_channel<Loop, asio::experimental::channel_traits<>, void(Error)>;
using Concurrent =
    asio::experimental::basic_concurrent_channel<Loop, asio::experimental::channel_traits<std::mutex>, void(Error)>;
constexpr asio::use_awaitable_t<Loop> kAwait;
const char* const kPeer = "asio";

template <class Chan>
void fill(Chan& channel, long permits) {
  for (long i = 0; i < permits; ++i) channel.try_send(Error{});
}

template <class Chan>
Co<> pairs(Chan& channel, long count, double& ns) {
  const auto start = Clock::now();
  for (long i = 0; i < count; ++i) {
    co_await channel.async_receive(kAwait);
    channel.try_send(Error{});
  }
  ns = ns_since(start) / static_cast<double>(count);
}
template <class Chan>
double uncontended(long count) {
  asio::io_context io(1);
  Chan channel(io.get_executor(), 10);
  fill(channel, 10);
  double ns = 0;
  asio::co_spawn(io, pairs(channel, count, ns), asio::detached);
  io.run();
  return ns;
}
double uncontended_try(long count) {
  asio::io_context io(1);
  Channel channel(io.get_executor(), 10);
  fill(channel, 10);
  const auto start = Clock::now();
  for (long i = 0; i < count; ++i) {
    channel.try_receive([](Error) {});
    channel.try_send(Error{});
  }
  return ns_since(start) / static_cast<double>(count);
}

template <class Chan>
Co<> worker(Chan& channel, long iters) {
  for (long i = 0; i < iters; ++i) {
    co_await channel.async_receive(kAwait);
    co_await asio::post(kAwait);  // the holder yields once
    channel.try_send(Error{});
  }
}
template <class Chan>
double contended(const Args& args) {
  const long threads = args.number("threads");
  const long tasks = args.number("tasks");
  const long iters = args.number("iters");
  const long permits = args.number("permits");
  asio::io_context io(static_cast<int>(threads));
  Chan channel(io.get_executor(), static_cast<std::size_t>(permits));
  fill(channel, permits);
  const auto start = Clock::now();
  for (long i = 0; i < tasks; ++i) asio::co_spawn(io, worker(channel, iters), asio::detached);
  std::vector<std::thread> others;
  for (long i = 1; i < threads; ++i) others.emplace_back([&io] { io.run(); });
  io.run();
  for (auto& thread : others) thread.join();
  return ns_since(start) / static_cast<double>(tasks * iters);
}

Co<> park(Channel& channel, long& up, long& gone) {
  ++up;
  co_await channel.async_receive(asio::as_tuple(kAwait));
  ++gone;
}
void waiter_memory(const Args& args) {
  const long count = args.number("n");
  asio::io_context io(1);
  Channel channel(io.get_executor(), 1);
  long up = 0;
  long gone = 0;
  const double before = resident_bytes();
  for (long i = 0; i < count; ++i) {
    asio::co_spawn(io, park(channel, up, gone), asio::detached);
    if (i % 1000 == 0) io.poll();
  }
  while (up < count) io.poll();
  args.emit("sem.waiter_mem", kPeer, (resident_bytes() - before) / static_cast<double>(count), "bytes");
  _exit(0);
}
double cancel(const Args& args) {
  const long count = args.number("n");
  const std::string order = args.text("order");
  asio::io_context io(1);
  Channel channel(io.get_executor(), 1);
  long up = 0;
  long gone = 0;
  std::deque<asio::cancellation_signal> signals(static_cast<std::size_t>(count));
  for (auto& signal : signals) {
    asio::co_spawn(io, park(channel, up, gone), asio::bind_cancellation_slot(signal.slot(), asio::detached));
  }
  while (up < count) io.poll();
  const auto start = Clock::now();
  if (order == "all") {
    channel.cancel();
  } else {
    const auto last = signals.size() - 1;
    for (std::size_t i = 0; i <= last; ++i) {
      signals[order == "lifo" ? last - i : i].emit(asio::cancellation_type::terminal);
    }
  }
  while (gone < count) {
    io.restart();
    io.poll();
  }
  return ns_since(start) / static_cast<double>(count);
}

Co<> nothing() { co_return; }
double spawn(long count) {
  asio::io_context io(1);
  const auto start = Clock::now();
  for (long i = 0; i < count; ++i) {
    asio::co_spawn(io, nothing(), asio::detached);
    if (i % 1000 == 999) {
      io.run();
      io.restart();
    }
  }
  io.run();
  return ns_since(start) / static_cast<double>(count);
}
Co<> awaits(long count, double& ns) {
  const auto start = Clock::now();
  for (long i = 0; i < count; ++i) co_await nothing();
  ns = ns_since(start) / static_cast<double>(count);
}
double await_child(long count) {
  asio::io_context io(1);
  double ns = 0;
  asio::co_spawn(io, awaits(count, ns), asio::detached);
  io.run();
  return ns;
}

Co<> sleeper(long& up, long& gone) {
  Timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
  ++up;
  co_await timer.async_wait(asio::as_tuple(kAwait));
  ++gone;
}
/// One sample per process. A cancel signal each: without one a sleeping coroutine cannot be reached.
void sleepers(const Args& args, const std::string& prefix) {
  const long count = args.number("n");
  const auto total = static_cast<double>(count);
  asio::io_context io(1);
  long up = 0;
  long gone = 0;
  const double before = resident_bytes();
  auto start = Clock::now();
  std::deque<asio::cancellation_signal> signals(static_cast<std::size_t>(count));
  for (auto& signal : signals) {
    asio::co_spawn(io, sleeper(up, gone), asio::bind_cancellation_slot(signal.slot(), asio::detached));
  }
  while (up < count) io.poll();
  args.emit(prefix + "start", kPeer, ns_since(start) / total, "ns");
  args.emit(prefix + "mem", kPeer, (resident_bytes() - before) / total, "bytes");
  start = Clock::now();
  for (auto& signal : signals) signal.emit(asio::cancellation_type::terminal);
  while (gone < count) {
    io.restart();
    io.poll();
  }
  args.emit(prefix + "cancel", kPeer, ns_since(start) / total, "ns");
  _exit(0);
}

void semaphore(const Args& args) {
  if (args.bench() == "sem.uncontended") {
    const long count = args.number("n");
    const std::string impl = args.text("impl");
    repeat(args, "sem.uncontended", kPeer, "ns", [&] {
      if (impl == "try") return uncontended_try(count);
      return impl == "concurrent" ? uncontended<Concurrent>(count) : uncontended<Channel>(count);
    });
  } else if (args.bench() == "sem.contended") {
    repeat(args, "sem.contended", kPeer, "ns",
           [&] { return args.number("threads") == 1 ? contended<Channel>(args) : contended<Concurrent>(args); });
  } else if (args.bench() == "sem.waiter_mem") {
    waiter_memory(args);
  } else if (args.bench() == "sem.cancel") {
    repeat(args, "sem.cancel", kPeer, "ns", [&] { return cancel(args); });
  } else {
    args.fail("not a bench of this peer");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Args args(argc, argv);
  if (args.bench() == "spawn") {
    repeat(args, "spawn", kPeer, "ns", [&] { return spawn(args.number("n")); });
  } else if (args.bench() == "await_child") {
    repeat(args, "await_child", kPeer, "ns", [&] { return await_child(args.number("n")); });
  } else if (args.bench() == "sleep") {
    sleepers(args, "sleep.");
  } else if (args.bench() == "scope.timer") {
    sleepers(args, "scope.timer_");
  } else {
    semaphore(args);
  }
}
