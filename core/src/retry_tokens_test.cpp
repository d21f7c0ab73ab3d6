#include "stint/retry_tokens.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

namespace stint {
namespace {

bool spend_one(RetryTokens& tokens) {
  auto token = tokens.take();
  if (token) token->spend();
  return token.has_value();
}

TEST(RetryTokens, in_an_outage_retries_stop_after_the_burst) {
  RetryTokens tokens({.burst = 5, .ratio = 0.1});
  int retries = 0;
  for (int call = 0; call < 1000; ++call) retries += spend_one(tokens);
  EXPECT_EQ(retries, 5);
}

TEST(RetryTokens, successes_earn_retries_at_the_ratio) {
  RetryTokens tokens({.burst = 2, .ratio = 0.1});
  while (spend_one(tokens)) {
  }
  for (int i = 0; i < 9; ++i) tokens.succeeded();
  EXPECT_FALSE(spend_one(tokens));
  tokens.succeeded();
  EXPECT_TRUE(spend_one(tokens)) << "ten tenths are one, exactly";
  EXPECT_FALSE(spend_one(tokens));
}

TEST(RetryTokens, the_bucket_does_not_overflow) {
  RetryTokens tokens({.burst = 2, .ratio = 1});
  for (int i = 0; i < 1000; ++i) tokens.succeeded();
  EXPECT_EQ(tokens.available(), 2.0);
}

TEST(RetryTokens, an_unused_retry_token_is_returned) {
  RetryTokens tokens({.burst = 1, .ratio = 0});
  {
    const auto token = tokens.take();
  }
  EXPECT_EQ(tokens.available(), 1.0);
  auto token = tokens.take();
  auto moved = std::move(token);
  EXPECT_FALSE(tokens.take());
  moved->spend();
  moved.reset();
  EXPECT_EQ(tokens.available(), 0.0);
}

TEST(RetryTokens, invalid_options_are_clamped) {
  EXPECT_EQ(RetryTokens({.burst = -1, .ratio = 5}).available(), 0.0);
  EXPECT_EQ(RetryTokens({.burst = std::nan(""), .ratio = std::nan("")}).available(), 0.0);
  EXPECT_EQ(RetryTokens({.burst = 1e30, .ratio = 0}).available(), 1e6);
}

// Retries ≤ burst + ratio × successes at any time, and never fewer than that allows while the bucket is not full.
RC_GTEST_PROP(RetryTokensProperty, retries_stay_under_their_share, ()) {
  const int burst = *rc::gen::inRange(0, 20);
  const int percent = *rc::gen::inRange(0, 101);
  RetryTokens tokens({.burst = static_cast<double>(burst), .ratio = percent / 100.0});
  std::int64_t level = burst * 100, retries = 0, successes = 0;  // in hundredths
  for (const bool success : *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>())) {
    if (success) {
      tokens.succeeded();
      ++successes;
      level = std::min<std::int64_t>(level + percent, burst * 100);
    } else {
      const bool allowed = spend_one(tokens);
      RC_ASSERT(allowed == (level >= 100));
      retries += allowed;
      level -= allowed ? 100 : 0;
    }
    RC_ASSERT(retries * 100 <= burst * 100 + percent * successes);
  }
}

// Threads take, return and succeed concurrently; the totals add up.
TEST(RetryTokensThreads, counts_are_exact) {
  constexpr int kThreads = 4, kRounds = 4'000'000, kBurst = 1'000'000;
  RetryTokens tokens({.burst = kBurst, .ratio = 0.01});
  for (int i = 0; i < kThreads; ++i) ASSERT_TRUE(spend_one(tokens));  // so that no success finds the bucket full
  std::atomic<int> spent = kThreads, ready = 0;
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&tokens, &spent, &ready, id] {
      int mine = 0;
      ready.fetch_add(1);
      while (ready.load() < kThreads) std::this_thread::yield();
      for (int round = 0; round < kRounds; ++round) {
        auto token = tokens.take();
        if (token && (round + id) % 32 == 0) {
          token->spend();
          ++mine;
        }
        tokens.succeeded();
      }
      spent.fetch_add(mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(spent.load(), kThreads + kThreads * (kRounds / 32)) << "there were enough tokens for all threads";
  EXPECT_NEAR(tokens.available(), kBurst + 0.01 * kThreads * kRounds - spent.load(), 1e-6);
}

}  // namespace
}  // namespace stint
