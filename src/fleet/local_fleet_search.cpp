// LocalFleet: lists and searches of runs.
#include "domain/run_id.hpp"
#include "fleet/local_fleet.hpp"

#include <algorithm>
#include <charconv>

namespace stint::fleet {
namespace {

Result<store::RunNumber> read_cursor(const std::string& text) {
  store::RunNumber number;
  if (text.empty()) return number;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number.value);
  if (error != std::errc() || last != end || number.value < 0) {
    return fail(Errc::invalid, "'before' must be the 'next' of the page before");
  }
  return number;
}

}  // namespace

/// Adds the names under which the store lists runs of the agent that use another account than its own.
Task<Result<>> LocalFleet::add_variants(store::Filter& filter) {
  if (filter.agent.empty()) co_return Result<>();
  STINT_CO_TRY(const std::vector<store::AgentEntry> known, co_await parts_.store.agents());
  for (const store::AgentEntry& each : known) {
    if (each.name != filter.agent && project::agent_of(each.name) == filter.agent) {
      filter.also_agents.push_back(each.name);
    }
  }
  co_return Result<>();
}

Task<Result<std::vector<RunView>>> LocalFleet::list(store::Filter filter) {
  filter.texts = true;  // they contain titles and usage
  filter.text_bytes_max = kListTextMax;
  STINT_CO_CHECK(co_await add_variants(filter));
  STINT_CO_TRY(std::vector<store::Run> runs, co_await parts_.store.list(std::move(filter)));
  std::vector<RunView> views;
  for (store::Run& run : runs) views.push_back(view(std::move(run)));
  co_return views;
}

Task<Result<engine::Total>> LocalFleet::count(store::Filter filter) {
  engine::Total total;
  filter.before = {};
  for (std::uint64_t examined = 0;; examined += store::kExamineMax) {
    filter.most = static_cast<std::uint32_t>(engine::kTotalMax + 1 - total.count);
    STINT_CO_TRY(const store::Matches page, co_await parts_.store.match(filter));
    total.count += page.runs.size();
    if (total.count > engine::kTotalMax) co_return engine::Total{.count = engine::kTotalMax, .exact = false};
    if (!page.next) co_return total;
    if (examined + store::kExamineMax >= engine::kTotalExaminedMax) {
      total.exact = false;
      co_return total;
    }
    filter.before = *page.next;
  }
}

/// Finds the runs in windows first, then reads them: the cost of a page is bounded, and other reads go between the
/// windows.
Task<Result<RunPage>> LocalFleet::search(Search search) {
  store::Filter filter = std::move(search.filter);
  STINT_CO_TRY(filter.before, read_cursor(search.cursor));
  const std::uint32_t most = filter.most;
  if (!filter.parent.empty() && !domain::is_run_id(filter.parent)) {
    STINT_CO_TRY(const RunView parent, co_await must_find(filter.parent));
    filter.parent = parent.run.id;
  }
  STINT_CO_CHECK(co_await add_variants(filter));
  RunPage page;
  if (search.total) {
    STINT_CO_TRY(page.total, co_await count(filter));
  }
  store::Filter found;
  found.most = most;
  std::optional<store::RunNumber> next;
  for (std::uint64_t examined = 0; examined < engine::kPageExaminedMax; examined += store::kExamineMax) {
    filter.most = most - static_cast<std::uint32_t>(found.only.size());
    STINT_CO_TRY(const store::Matches matches, co_await parts_.store.match(filter));
    for (const auto& match : matches.runs) found.only.push_back(match.number);
    next = matches.next;
    if (!next || found.only.size() >= most) break;
    filter.before = *next;
  }
  if (next) page.next = std::to_string(next->value);
  if (found.only.empty()) co_return page;
  STINT_CO_TRY(page.runs, co_await list(std::move(found)));
  co_return page;
}

}  // namespace stint::fleet
