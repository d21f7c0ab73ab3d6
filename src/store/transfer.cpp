#include "store/transfer.hpp"

namespace stint::store {
namespace {

constexpr std::uint32_t kTransferPage = 200;

Error is_running(std::uint64_t runs) {
  return {Errc::conflict, std::to_string(runs) + (runs == 1 ? " run is" : " runs are") +
                              " running. Drain the nodes or cancel the runs, then repeat"};
}

}  // namespace

Task<Result<Moved>> copy_store(Store& from, Sink& into) {
  STINT_CO_CHECK(co_await from.tick());  // runs of a dead node must not count as running
  STINT_CO_TRY(const Stats before, co_await from.stats());
  const auto running = before.runs.find(domain::RunState::running);
  if (running != before.runs.end() && running->second > 0) co_return fail(is_running(running->second));
  Moved moved;
  STINT_CO_TRY(std::vector<AgentEntry> agents, co_await from.agents());
  for (AgentEntry& agent : agents) {
    STINT_CO_CHECK(co_await into.take(std::move(agent)));
    ++moved.agents;
  }
  STINT_CO_TRY(std::vector<LimitState> limits, co_await from.limits());
  for (LimitState& limit : limits) {
    STINT_CO_CHECK(co_await into.take(std::move(limit)));
    ++moved.limits;
  }
  RunNumber after{};
  while (true) {
    STINT_CO_TRY(std::vector<RunRecord> page, co_await from.dump(after, kTransferPage));
    if (page.empty()) break;
    after = page.back().run.number;
    moved.runs += page.size();
    for (const RunRecord& record : page) moved.events += record.events.size();
    STINT_CO_CHECK(co_await into.take(std::move(page)));
  }
  STINT_CO_TRY(const Stats now, co_await from.stats());
  if (now.events != before.events || now.runs != before.runs) {
    co_return fail(Errc::conflict,
                   "the store changed during the transfer. Stop the processes that use it, then repeat");
  }
  co_return moved;
}

Task<Result<>> StoreSink::look() {
  if (looked_) co_return Result<>();
  STINT_CO_TRY(const std::vector<AgentEntry> agents, co_await into_.agents());
  for (const AgentEntry& agent : agents) agents_.insert(agent.name);
  STINT_CO_TRY(const std::vector<LimitState> limits, co_await into_.limits());
  for (const LimitState& limit : limits) limits_.insert(limit.name);
  looked_ = true;
  co_return Result<>();
}

Task<Result<>> StoreSink::take(AgentEntry agent) {
  STINT_CO_CHECK(co_await look());
  if (agents_.contains(agent.name)) co_return Result<>();
  ++added_.agents;
  co_return co_await into_.define({std::move(agent)});
}

Task<Result<>> StoreSink::take(LimitState limit) {
  STINT_CO_CHECK(co_await look());
  if (limits_.contains(limit.name)) co_return Result<>();
  ++added_.limits;
  // Marks it as configured, so that a configuration that does not name it removes it.
  if (limit.capacity) {
    STINT_CO_CHECK(co_await into_.configure({{limit.name, *limit.capacity}}, {}));
  } else {
    STINT_CO_CHECK(co_await into_.resize(limit.name, std::nullopt));
  }
  if (limit.paused) STINT_CO_CHECK(co_await into_.pause(limit.name, limit.paused_for));
  co_return Result<>();
}

Task<Result<>> StoreSink::take(std::vector<RunRecord> runs) {
  std::uint64_t events = 0;
  for (const RunRecord& record : runs) events += record.events.size();
  const std::size_t count = runs.size();
  STINT_CO_TRY(const std::uint64_t fresh, co_await into_.load(std::move(runs)));
  added_.runs += fresh;
  if (fresh == count) added_.events += events;
  co_return Result<>();
}

}  // namespace stint::store
