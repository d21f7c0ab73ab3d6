// The ending ladder: the times of its steps, and that it ends real processes.
#include "driver/ladder.hpp"

#include "os/spawn.hpp"

#include <gtest/gtest.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1000s};

struct Counted {
  int asked = 0;
  Ladder ladder{100ms, "", [this] {
                  ++asked;
                  return std::vector<os::Process>(3);
                }};
};

TEST(Ladder, waits_for_the_grace_before_it_kills) {
  Counted counted;
  Ladder& ladder = counted.ladder;
  EXPECT_FALSE(ladder.begun());
  ladder.step(kStart + 1h);
  EXPECT_EQ(counted.asked, 0) << "not begun";
  ladder.begin(SIGTERM, kStart);
  EXPECT_TRUE(ladder.begun());
  EXPECT_EQ(ladder.next(), kStart + 100ms);
  EXPECT_EQ(ladder.found(), 3U);
  ladder.step(kStart + 99ms);
  EXPECT_EQ(counted.asked, 1);
  ladder.step(kStart + 100ms);
  EXPECT_EQ(counted.asked, 2);
}

TEST(Ladder, repeats_sigkill_for_ever_with_growing_pauses) {
  Counted counted;
  counted.ladder.begin(SIGKILL, kStart);
  TimePoint now = kStart;
  Duration last{};
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(counted.ladder.next(), now);
    counted.ladder.step(now);
    const Duration pause = counted.ladder.next() - now;
    EXPECT_GE(pause, last);
    EXPECT_LE(pause, 100ms);
    last = pause;
    now = counted.ladder.next();
  }
  EXPECT_EQ(last, 100ms);
  EXPECT_EQ(counted.asked, 21);
}

TEST(Ladder, hasten_shortens_the_grace_and_never_extends_it) {
  Counted counted;
  Ladder& ladder = counted.ladder;
  ladder.hasten(10ms, kStart);
  EXPECT_EQ(ladder.next(), TimePoint::max()) << "not begun";
  ladder.begin(SIGINT, kStart);
  ladder.hasten(200ms, kStart);
  EXPECT_EQ(ladder.next(), kStart + 100ms);
  ladder.hasten(10ms, kStart + 20ms);
  EXPECT_EQ(ladder.next(), kStart + 30ms);
  EXPECT_EQ(counted.asked, 2) << "SIGTERM for those that the first signal left";
}

TEST(Ladder, only_sigkill_skips_the_grace) {
  Counted counted;
  Ladder& ladder = counted.ladder;
  ladder.begin(SIGTERM, kStart);
  ladder.begin(SIGINT, kStart + 50ms);
  EXPECT_EQ(ladder.next(), kStart + 100ms) << "a second polite signal gives no new grace";
  ladder.begin(SIGKILL, kStart + 60ms);
  EXPECT_EQ(ladder.next(), kStart + 60ms);
  EXPECT_EQ(counted.asked, 1) << "the first signal is sent once";
}

class LadderOfOne : public testing::TestWithParam<bool> {
 protected:
  LadderOfOne() {
    os::SpawnOptions options;
    options.program = "/bin/sh";
    options.argv = {"sh", "-c", GetParam() ? "trap '' TERM; kill -STOP $$; exec sleep 60" : "kill -STOP $$; sleep 60"};
    options.environment = os::environment_with({});
    pid_ = os::spawn(options).value();
    while (!os::read_process(pid_)->is_stopped()) {
    }
  }
  pid_t pid_;
};
INSTANTIATE_TEST_SUITE_P(, LadderOfOne, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "immune" : "obedient"; });

TEST_P(LadderOfOne, ends_a_stopped_process) {
  Ladder ladder(100ms, "", [&] { return std::vector{*os::read_process(pid_)}; });
  ladder.begin(SIGTERM, kStart);
  if (GetParam()) ladder.step(kStart + 100ms);
  EXPECT_EQ(os::blocking_reap(pid_) & 0x7f, GetParam() ? SIGKILL : SIGTERM);
}

TEST_P(LadderOfOne, ends_processes_that_the_first_scans_missed) {
  int looks = 0;
  Ladder ladder(100ms, "",
                [&] { return ++looks <= 2 ? std::vector<os::Process>() : std::vector{*os::read_process(pid_)}; });
  ladder.begin(SIGTERM, kStart);
  ladder.step(kStart + 100ms);
  EXPECT_FALSE(os::try_reap(pid_));
  ladder.step(ladder.next());
  EXPECT_EQ(os::blocking_reap(pid_) & 0x7f, SIGKILL);
}

}  // namespace
}  // namespace stint::driver
