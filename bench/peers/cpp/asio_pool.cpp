// Worker pool: worker coroutines that read jobs from a bounded Asio channel, on one io_context and one thread.
// usage: asio_pool pool.throughput cap= workers= jobs=      pool.ping workers= jobs=
#include "peer.hpp"

#include <boost/asio.hpp>
#include <boost/asio/experimental/channel.hpp>

namespace asio = boost::asio;

namespace {

using Error = boost::system::error_code;
using Loop = asio::io_context::executor_type;
using Co = asio::awaitable<void, Loop>;
template <class... Args>
using Channel = asio::experimental::basic_channel<Loop, asio::experimental::channel_traits<>, void(Error, Args...)>;
constexpr asio::use_awaitable_t<Loop> kAwait;
const char* const kPeer = "asio";

/// The result is the latency slot and a count; a reply channel is used by the ping only.
struct Job {
  Clock::time_point submitted;
  double* latency_us;
  long* done;
  Channel<int>* reply;
};

Co worker(Channel<Job>& queue) {
  for (;;) {
    const auto [error, job] = co_await queue.async_receive(asio::as_tuple(kAwait));
    if (error) co_return;
    if (job.latency_us != nullptr) *job.latency_us = ns_since(job.submitted) / 1e3;
    ++*job.done;
    if (job.reply != nullptr) job.reply->try_send(Error{}, 1);
  }
}
Co submit_all(Channel<Job>& queue, std::vector<double>& latency, long& done) {
  for (auto& slot : latency) co_await queue.async_send(Error{}, Job{Clock::now(), &slot, &done, nullptr}, kAwait);
  queue.close();
}
Co ping_all(Channel<Job>& queue, Channel<int>& reply, std::vector<double>& latency, long& done) {
  for (auto& slot : latency) {
    const auto start = Clock::now();
    co_await queue.async_send(Error{}, Job{start, nullptr, &done, &reply}, kAwait);
    co_await reply.async_receive(kAwait);
    slot = ns_since(start) / 1e3;
  }
  queue.close();
}

void throughput(const Args& args) {
  const long jobs = args.number("jobs");
  for (long rep = 0; rep <= args.reps(); ++rep) {
    asio::io_context io(1);
    Channel<Job> queue(io.get_executor(), static_cast<std::size_t>(args.number("cap")));
    std::vector<double> latency(static_cast<std::size_t>(jobs));
    long done = 0;
    for (long i = 0; i < args.number("workers"); ++i) asio::co_spawn(io, worker(queue), asio::detached);
    const auto start = Clock::now();
    asio::co_spawn(io, submit_all(queue, latency, done), asio::detached);
    io.run();
    const double seconds = ns_since(start) / 1e9;
    if (done != jobs) args.fail("lost jobs");
    if (rep == 0) continue;
    args.emit("pool.throughput", kPeer, static_cast<double>(jobs) / seconds, "jobs/s");
    args.emit("pool.latency_p50", kPeer, percentile(latency, .5), "us");
    args.emit("pool.latency_p99", kPeer, percentile(latency, .99), "us");
  }
}
void ping(const Args& args) {
  for (long rep = 0; rep <= args.reps(); ++rep) {
    asio::io_context io(1);
    Channel<Job> queue(io.get_executor(), 100);
    Channel<int> reply(io.get_executor(), 1);
    std::vector<double> latency(static_cast<std::size_t>(args.number("jobs")));
    long done = 0;
    for (long i = 0; i < args.number("workers"); ++i) asio::co_spawn(io, worker(queue), asio::detached);
    asio::co_spawn(io, ping_all(queue, reply, latency, done), asio::detached);
    io.run();
    if (rep == 0) continue;
    args.emit("pool.ping_p50", kPeer, percentile(latency, .5), "us");
    args.emit("pool.ping_p99", kPeer, percentile(latency, .99), "us");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Args args(argc, argv);
  if (args.bench() == "pool.throughput") {
    throughput(args);
  } else if (args.bench() == "pool.ping") {
    ping(args);
  } else {
    args.fail("not a bench of this peer");
  }
}
