// The promise of the line: a ticket that was taken before another process began to join is ahead of it, whatever
// happens concurrently, including compaction. OFD locks belong to the open file, so threads contend as processes do.
#include "limit/line.hpp"
#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace stint::limit {
namespace {

constexpr int kThreads = 8;
constexpr int kTries = 100'000;
constexpr int kJoins = 1000;  // per thread: about a second, and some hundred compactions

struct Shared {
  std::array<std::atomic<std::uint64_t>, kThreads> finished{};  // the ticket that each thread has taken; 0: none
  std::atomic<std::uint64_t> tickets = 0;
  std::atomic<int> wrong = 0, failed = 0, started_anew = 0;
};

/// During a compaction the line cannot be joined, and the compacting thread may be preempted by one of the others.
bool join(Line& line, std::uint64_t ticket) {
  os::SlotRecord who;
  who.pid = ::getpid();
  who.label = std::to_string(ticket);
  for (int tries = 0; tries < kTries; ++tries) {
    if (const Result<> joined = line.join(who); joined || joined.error() != Errc::unavailable)
      return joined.has_value();
    ::sched_yield();
  }
  return false;
}

/// Whether the ticket is in the line ahead of the line's own.
bool is_ahead(const Line& line, std::uint64_t ticket, std::uint64_t own) {
  for (const os::SlotRecord& each : line.tickets(kThreads)) {
    if (each.label == std::to_string(ticket)) return true;
    if (each.label == std::to_string(own)) return false;
  }
  return false;
}

void join_and_leave(const HostLimit& limit, Shared& shared, std::size_t self, std::uint32_t seed) {
  std::minstd_rand random(seed);
  std::uintmax_t size_before = 0;
  for (int i = 0; i < kJoins; ++i) {
    // The last ticket whose owner had joined before this join begins.
    std::uint64_t before = 0;
    std::size_t whose = self;
    for (std::size_t other = 0; other < kThreads; ++other) {
      const std::uint64_t ticket = shared.finished[other];
      if (other != self && ticket > before) {
        before = ticket;
        whose = other;
      }
    }
    auto line = Line::open(limit);
    const std::uint64_t own = ++shared.tickets;
    if (!line || !join(*line, own)) {
      ++shared.failed;
      continue;
    }
    // Still the same ticket: it was in the line all the time, so it must be ahead of this one.
    const bool ahead = whose == self || is_ahead(*line, before, own);
    if (!ahead && shared.finished[whose] == before) ++shared.wrong;
    const auto size = std::filesystem::file_size(limit.line_path());
    if (std::exchange(size_before, size) > size) ++shared.started_anew;
    shared.finished[self] = own;
    for (auto turns = random() % 8; turns > 0; --turns) ::sched_yield();
    shared.finished[self] = 0;
    line->leave();
    if (random() % 16 == 0) {  // sometimes the line becomes empty and is compacted
      for (auto turns = random() % 64; turns > 0; --turns) ::sched_yield();
    }
  }
}

TEST(LineProperty, a_ticket_is_ahead_of_all_later_joins) {
  const os::TestFolder folder;
  HostLimit limit;
  limit.name = "x";
  limit.directory = folder.path();
  Shared shared;
  const char* const given = std::getenv("STINT_SEED");
  const auto seed = static_cast<std::uint32_t>(given != nullptr ? std::atoll(given) : ::getpid());
  SCOPED_TRACE("seed " + std::to_string(seed));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { join_and_leave(limit, shared, i, seed + static_cast<std::uint32_t>(i)); });
    }
  }
  EXPECT_EQ(shared.wrong, 0);
  EXPECT_EQ(shared.failed, 0) << "a line can be joined soon after a compaction";
  EXPECT_GT(shared.started_anew, 1) << "never compacted: the test proves too little";
  RecordProperty("compactions", shared.started_anew);
}

}  // namespace
}  // namespace stint::limit
