// Members of Ledger: families, and deletion of old runs.
#include "store/ledger.hpp"

#include <algorithm>

namespace stint::store {

Result<> Ledger::join_family(const std::string& head, RunNumber run) {
  STINT_TRY(std::optional<FamilyRow> family, rows_.family(head));
  if (!family) {
    STINT_TRY(const std::optional<RunRow> first, rows_.run(head));  // none: the budget is no run's
    Use used;
    if (first) used = {.tokens = first->run.tokens, .cost_micros = first->run.cost_micros};
    STINT_TRY(family, rows_.make_family({.head = head, .used = used}));
    if (first) STINT_CHECK(rows_.join(family->number, first->run.number));
  }
  return rows_.join(family->number, run);
}

/// The first loaded run of a family brings the whole sum; the others only join.
Result<> Ledger::load_families(const std::vector<FamilyUse>& sums, RunNumber run) {
  for (const FamilyUse& sum : sums) {
    STINT_TRY(std::optional<FamilyRow> family, rows_.family(sum.head));
    if (!family) {
      STINT_TRY(family, rows_.make_family(sum));
    }
    STINT_CHECK(rows_.join(family->number, run));
  }
  return {};
}

Result<> Ledger::count_use(RunRow& row, const Use& so_far, std::int64_t settled) {
  const Use more{.tokens = so_far.tokens - row.reported.tokens,
                 .cost_micros = so_far.cost_micros - row.reported.cost_micros};
  const bool unused = more == Use();
  if (unused && settled == 0) return {};
  STINT_CHECK(rows_.add_day_use(row.agent, clock_.wall(), more + Use{.attempts = settled}));
  if (unused) return {};
  row.reported = so_far;
  row.run.tokens += more.tokens;
  row.run.cost_micros += more.cost_micros;
  STINT_TRY(const std::vector<FamilyRow> families, rows_.families_of(row.run.number));
  for (const FamilyRow& family : families) STINT_CHECK(rows_.add_use(family.number, more));
  return {};
}

Result<std::optional<std::vector<FamilyUse>>> Ledger::report(NodeNumber node, AttemptKey attempt, const Use& so_far) {
  STINT_TRY(std::optional<RunRow> row, find_owned(node, attempt));
  if (!row) return std::nullopt;
  if (so_far != row->reported) {
    STINT_CHECK(count_use(*row, so_far, 0));
    STINT_CHECK(rows_.put(*row));
  }
  std::vector<FamilyUse> sums;
  STINT_TRY(const std::vector<FamilyRow> families, rows_.families_of(attempt.run));
  for (const FamilyRow& family : families) sums.push_back(family.sum);
  const std::string& id = row->run.id;
  if (std::ranges::find(sums, id, &FamilyUse::head) == sums.end()) {
    sums.push_back({.head = id, .used = {.tokens = row->run.tokens, .cost_micros = row->run.cost_micros}});
  }
  return sums;
}

Result<std::vector<FamilyUse>> Ledger::used(const std::vector<std::string>& heads) {
  std::vector<FamilyUse> sums;
  for (const std::string& head : heads) {
    FamilyUse& sum = sums.emplace_back(FamilyUse{.head = head, .used = {}});
    if (head == kToday) {
      STINT_TRY(sum.used, rows_.used_on(clock_.wall()));
      continue;
    }
    STINT_TRY(const std::optional<FamilyRow> family, rows_.family(head));
    if (family) {
      sum.used = family->sum.used;
      continue;
    }
    STINT_TRY(const std::optional<RunRow> alone, rows_.run(head));
    if (alone) sum.used = {.tokens = alone->run.tokens, .cost_micros = alone->run.cost_micros};
  }
  return sums;
}

Result<std::uint64_t> Ledger::prune(Duration older_than, std::uint32_t most) {
  const WallTime before = now() - std::chrono::ceil<std::chrono::milliseconds>(older_than);
  STINT_TRY(const std::vector<RunNumber> old, rows_.finished_before(before, most));
  for (const RunNumber number : old) STINT_CHECK(rows_.forget(number));
  STINT_CHECK(forget_batches(before, most));
  STINT_CHECK(rows_.merge_hours(clock_.wall() - kHoursKept));
  STINT_CHECK(rows_.forget_fleet_events(before));
  return old.size();
}

Result<bool> Ledger::is_prune_due(Duration every) {
  STINT_TRY(const std::optional<WallTime> last, rows_.pruned_at());
  return !last || now() - *last >= every;
}

Result<std::uint64_t> Ledger::prune_if_due(Duration keep, Duration every, std::uint32_t most) {
  STINT_TRY(const bool due, is_prune_due(every));
  if (!due) return 0;
  STINT_TRY(const std::uint64_t forgotten, prune(keep, most));
  if (forgotten == most) return forgotten;  // there may be more: the prune stays due
  STINT_CHECK(rows_.sweep_nodes());
  STINT_CHECK(rows_.put_pruned_at(now()));
  return forgotten;
}

}  // namespace stint::store
