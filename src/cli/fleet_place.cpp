#include "cli/fleet_place.hpp"

#include "cli/end_signals.hpp"
#include "cli/exit_status.hpp"
#include "stint/asio.hpp"

#include <fmt/format.h>

namespace stint::cli {
namespace {

constexpr std::uint32_t kCompletedRunsMax = 50;  // of runs, for completion
constexpr Duration kNamesTime = std::chrono::seconds(2);

Task<> handle_signals(EndSignals& signals, int& received, Scope& work) {
  received = co_await signals.next();
  work.cancel(Reason::user, "a signal");
}

}  // namespace

int run_on_fleet(const domain::System& system, const fleet::ConnectionNeeds& needs, const FleetBody& body) {
  Reactor reactor;
  const Environment environment = blocking_read_environment();
  fleet::Connection connection(reactor, system, environment, print_outage);
  if (const auto prepared = connection.blocking_prepare(needs); !prepared) return complain(prepared.error());
  int exit = kExitFailed, signal = 0;
  const auto act = [&]() -> Task<Result<int>> {
    STINT_CO_CHECK(co_await connection.open());
    FleetAccess access{.fleet = connection.fleet(),
                       .reactor = reactor,
                       .clock = reactor,
                       .environment = environment,
                       .system = system,
                       .connection = connection};
    Result<int> done = co_await body(access);
    co_await connection.prune_if_due();
    co_return done;
  };
  const auto carry = [&]() -> Task<> {
    const Result<int> done = co_await act();
    if (!done) complain(done.error());
    exit = done ? *done : exit_status(done.error());
  };
  {
    EndSignals signals(reactor);
    RootScope helpers(reactor);
    RootScope work(reactor);
    helpers.spawn(handle_signals(signals, signal, work));
    work.spawn(carry());
    (void)reactor.run(work);  // `exit` and `signal` say how it ended
    helpers.cancel(Reason::shutdown);
    (void)reactor.run(helpers);  // cancelled here
  }
  return signal != 0 ? kExitBySignal + signal : exit;
}

Task<Result<engine::RunView>> find_run(fleet::Fleet& fleet, std::string id) {
  STINT_CO_TRY(std::optional<engine::RunView> found, co_await fleet.find(id));
  if (!found) co_return fail(Errc::invalid, "there is no run '" + id + "'. `stint ls` lists them");
  co_return std::move(*found);
}

std::vector<Candidate> blocking_run_names(const domain::System& system) {
  std::vector<Candidate> names;
  Reactor reactor;
  fleet::Connection connection(reactor, system, blocking_read_environment(), print_outage);
  if (!connection.blocking_prepare({})) return names;
  const auto collect = [&]() -> Task<Result<>> {
    STINT_CO_CHECK(co_await connection.open());
    store::Filter filter;
    filter.most = kCompletedRunsMax;
    STINT_CO_TRY(const std::vector<engine::RunView> runs, co_await connection.fleet().list(std::move(filter)));
    for (const engine::RunView& view : runs) {
      names.push_back(
          {view.run.id, fmt::format("{} {} {}", view.run.agent, to_string(view.run.state), view.input.title)});
    }
    co_return Result<>();
  };
  ScopeOptions options;
  options.deadline = Deadline::after(reactor.now(), kNamesTime);
  RootScope work(reactor, options);
  work.spawn(collect());
  (void)reactor.run(work);  // offers what was found in time; a completion shows no errors
  return names;
}

}  // namespace stint::cli
