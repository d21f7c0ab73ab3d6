#include "store/audit.hpp"

#include "store/record.hpp"

#include <algorithm>
#include <set>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;

constexpr std::uint32_t kAuditPage = 200;

/// Checks a run against the other runs. Must see the runs in the order of submission.
class CrossChecks {
 public:
  explicit CrossChecks(const std::vector<AgentEntry>& agents) {
    for (const AgentEntry& agent : agents) agents_.insert(agent.name);
  }

  /// The store reads sums after the runs of their page, so the last sum seen includes all of these runs.
  void count(const RunRecord& record) {
    for (const FamilyUse& family : record.families) {
      Family& sum = families_[family.head];
      sum.recorded = family.used;
      sum.seen.tokens += record.run.tokens;
      sum.seen.cost_micros += record.run.cost_micros;
    }
  }
  /// The sum may exceed what the runs show: it includes the use of forgotten runs.
  [[nodiscard]] std::vector<std::string> check_families() const {
    std::vector<std::string> findings;
    for (const auto& [head, sum] : families_) {
      if (sum.recorded.tokens < sum.seen.tokens || sum.recorded.cost_micros < sum.seen.cost_micros) {
        findings.push_back("run " + head + ": the recorded use of its family is less than the sum over its runs");
      }
    }
    return findings;
  }

  std::string check(const Run& run) {
    if (!agents_.contains(run.agent)) return "its agent '" + run.agent + "' does not exist";
    if (!run.key.empty() && !keys_.emplace(run.agent, run.key).second)
      return "its idempotency key '" + run.key + "' is used by two runs";
    if (run.session.empty() || domain::is_finished(run.state)) return {};
    const bool behind = !sessions_.insert(run.session).second;
    const bool held = run.state == RunState::queued && run.hold == Hold::session;
    if (held && !behind) return "it waits for its session, but is the oldest unfinished run of it";
    if (behind && (run.state == RunState::running || (run.state == RunState::queued && !held))) {
      return "it does not wait for its session, but an earlier run of it is unfinished";
    }
    return {};
  }

 private:
  struct Family {
    Use recorded, seen;
  };
  std::map<std::string, Family> families_;
  std::set<std::string, std::less<>> agents_, sessions_;  // of unfinished runs
  std::set<std::pair<std::string, std::string>> keys_;
};

Task<Result<Audit>> walk(Store& store) {
  Audit audit;
  STINT_CO_TRY(const std::vector<AgentEntry> agents, co_await store.agents());
  CrossChecks checks(agents);
  RunNumber after{};
  while (true) {
    STINT_CO_TRY(const std::vector<RunRecord> page, co_await store.dump(after, kAuditPage));
    if (page.empty()) {
      for (std::string& finding : checks.check_families()) {
        if (audit.findings.size() < Audit::kFindingsMax) audit.findings.push_back(std::move(finding));
      }
      co_return audit;
    }
    after = page.back().run.number;
    for (const RunRecord& record : page) {
      ++audit.runs;
      audit.events += record.events.size();
      checks.count(record);
      for (const std::string& wrong : {contradiction(record), checks.check(record.run)}) {
        if (wrong.empty() || audit.findings.size() == Audit::kFindingsMax) continue;
        audit.findings.push_back("run " + record.run.id + ": " + wrong);
      }
    }
  }
}

}  // namespace

Task<Result<Audit>> audit(Store& store) {
  STINT_CO_TRY(Audit first, co_await walk(store));
  if (!first.findings.empty()) {
    STINT_CO_TRY(const Audit second, co_await walk(store));
    std::erase_if(first.findings, [&](const std::string& finding) {
      return std::ranges::find(second.findings, finding) == second.findings.end();
    });
  }
  STINT_CO_TRY(const std::vector<std::string> medium, co_await store.check());
  first.findings.insert(first.findings.begin(), medium.begin(), medium.end());
  co_return first;
}

}  // namespace stint::store
