#include "queue/ready_core.hpp"

#include <algorithm>
#include <queue>

namespace stint::queue {
namespace {

struct Turn {
  std::int64_t score_ms;
  std::size_t candidate;
  friend bool operator>(const Turn& a, const Turn& b) {
    return a.score_ms != b.score_ms ? a.score_ms > b.score_ms : a.candidate > b.candidate;
  }
};

std::int64_t score(const Candidate& candidate, std::uint32_t given) {
  const auto step = std::chrono::duration_cast<std::chrono::milliseconds>(kShareStep).count();
  return candidate.rank_ms + step * (std::int64_t{candidate.running} + given);
}

}  // namespace

std::vector<Share> share(std::vector<Candidate> candidates, std::uint32_t workers) {
  std::ranges::sort(candidates, {}, [](const Candidate& each) { return std::pair(each.rank_ms, each.agent); });
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> line;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].runs > 0) line.push({score(candidates[i], 0), i});
  }
  std::vector<Share> shares;
  std::vector<std::size_t> place(candidates.size(), candidates.size());  // in `shares`
  for (; workers > 0 && !line.empty(); --workers) {
    const std::size_t chosen = line.top().candidate;
    line.pop();
    if (place[chosen] == candidates.size()) {
      place[chosen] = shares.size();
      shares.push_back({candidates[chosen].agent, 0});
    }
    const std::uint32_t given = ++shares[place[chosen]].workers;
    if (given < candidates[chosen].runs) line.push({score(candidates[chosen], given), chosen});
  }
  return shares;
}

}  // namespace stint::queue
