/// Shared by tests with several threads: `Meeting`, a reusable barrier, and rounds of two racing threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace stint {

/// A reusable barrier: `meet` returns on all threads at about the same time.
class Meeting {
 public:
  explicit Meeting(int parties) : parties_(parties) {}
  void meet() noexcept {
    const int all = (arrived_.fetch_add(1) / parties_ + 1) * parties_;
    for (int spins = 0; arrived_.load() < all; ++spins) {
      if (spins > 1000) std::this_thread::yield();
    }
  }

 private:
  const int parties_;
  std::atomic<int> arrived_ = 0;
};
inline void dawdle(std::uint64_t steps) {
  for (volatile std::uint64_t left = steps; left > 0; left = left - 1) {
  }
}

/// Runs `body(thread number)` on `count` threads at once.
template <class Body>
void on_threads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int id = 0; id < count; ++id) threads.emplace_back([&body, id] { body(id); });
  for (std::thread& thread : threads) thread.join();
}

inline constexpr auto kRaceTimeMax = std::chrono::seconds(2);  // on a busy machine two threads seldom run at once

/// Runs `here(round, begin, end)` on this thread and `there(round)` on another, between `begin()` and `end()` of
/// `here`. Repeats `count` times or as time allows; returns how often.
template <class Here, class There>
int race_rounds(int count, Here here, There there) {
  Meeting begin(2), end(2);
  bool over = false;  // synchronised by the barrier
  std::thread other([&] {
    for (int round = 0;; ++round) {
      begin.meet();
      if (over) return;
      there(round);
      end.meet();
    }
  });
  const auto until = std::chrono::steady_clock::now() + kRaceTimeMax;
  int round = 0;
  for (; round < count && std::chrono::steady_clock::now() < until; ++round) {
    here(round, [&begin] { begin.meet(); }, [&end] { end.meet(); });
  }
  over = true;
  begin.meet();
  other.join();
  return round;
}

}  // namespace stint
