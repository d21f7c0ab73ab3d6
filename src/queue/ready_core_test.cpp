#include "queue/ready_core.hpp"

#include <gtest/gtest.h>

#include <random>

namespace stint::queue {
namespace {

constexpr std::int64_t kStepMs = 30'000;

TEST(Share, the_run_that_is_due_first_goes_first) {
  const auto shares = share({{"late", 1, 2000, 0}, {"early", 1, 1000, 0}}, 1);
  EXPECT_EQ(shares, (std::vector<Share>{{"early", 1}}));
}

TEST(Share, a_thousand_runs_of_one_agent_leave_room_for_another) {
  const auto shares = share({{"many", 1000, 1000, 0}, {"one", 1, 1500, 0}}, 10);
  EXPECT_EQ(shares, (std::vector<Share>{{"many", 9}, {"one", 1}}));
}

TEST(Share, running_runs_of_an_agent_count_against_it) {
  EXPECT_EQ(share({{"busy", 5, 1000, 3}, {"idle", 5, 2000, 0}}, 1), (std::vector<Share>{{"idle", 1}}));
  EXPECT_EQ(share({{"busy", 5, 1000, 3}, {"idle", 5, 1000 + 3 * kStepMs + 1, 0}}, 1),
            (std::vector<Share>{{"busy", 1}}));
}

TEST(Share, no_agent_gets_more_workers_than_runs_and_no_worker_stays_idle) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Candidate> candidates;
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < random() % 6; ++i) {
      const auto runs = static_cast<std::uint32_t>(random() % 5);
      candidates.push_back({"a" + std::to_string(i), runs, static_cast<std::int64_t>(random() % 100'000),
                            static_cast<std::uint32_t>(random() % 4)});
      all += runs;
    }
    const auto workers = static_cast<std::uint32_t>(random() % 12);
    std::uint32_t given = 0;
    for (const Share& each : share(candidates, workers)) {
      const auto of = std::ranges::find(candidates, each.agent, &Candidate::agent);
      ASSERT_GE(of->runs, each.workers);
      ASSERT_GT(each.workers, 0U);
      given += each.workers;
    }
    ASSERT_EQ(given, std::min(all, workers));
  }
}

TEST(Share, no_agent_starves_while_new_runs_keep_coming) {
  // "old" waits; "fresh" always has a newer run. Ranks of new runs grow with time.
  std::uint32_t rounds = 0;
  for (std::int64_t now = 1000; rounds < 1000; now += 1000, ++rounds) {
    const auto shares = share({{"old", 1, 500, 2}, {"fresh", 1, now, 0}}, 1);
    if (shares.front().agent == "old") break;
  }
  EXPECT_LE(rounds, 61U);  // two steps of half a minute
}

}  // namespace
}  // namespace stint::queue
