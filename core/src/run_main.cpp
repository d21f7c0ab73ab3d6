#include "stint/asio.hpp"

#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdio>

namespace stint {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBySignal = 128;  // plus the signal, as shells report it

Task<int> next_signal(asio::signal_set& signals) {
  const auto [error, signal] = co_await signals.async_wait(use_task);
  boost::system::error_code ignored;
  signals.clear(ignored);  // the next signal has its default effect and ends the process
  co_return error ? 0 : signal;
}

template <class T>
Task<Result<int>> with_status(Task<T> program, int status) {
  if constexpr (detail::IsResult<T>::value) {
    STINT_CO_CHECK(co_await std::move(program));
  } else {
    co_await std::move(program);
  }
  co_return status;
}
Task<Result<int>> as_result(Task<int> program) { co_return co_await std::move(program); }

}  // namespace

int run_main(Task<Result<int>> program) {
  Reactor reactor;
  asio::signal_set signals(reactor.io(), SIGINT, SIGTERM);
  const auto until_signal = [&]() -> Task<Result<int>> {
    auto first = co_await race(std::move(program), next_signal(signals));
    if (const int* const signal = std::get_if<1>(&first)) co_return kExitBySignal + *signal;
    co_return std::get<0>(std::move(first));
  };
  const Result<int> status = reactor.run(until_signal());
  if (status) return *status;
  std::fprintf(stderr, "error: %s\n", status.error().describe().c_str());
  return kExitFailed;
}

int run_main(Task<Result<>> program) { return run_main(with_status(std::move(program), 0)); }
int run_main(Task<int> program) { return run_main(as_result(std::move(program))); }
int run_main(Task<> program) { return run_main(with_status(std::move(program), 0)); }

}  // namespace stint
