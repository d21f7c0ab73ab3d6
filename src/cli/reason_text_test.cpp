#include "cli/reason_text.hpp"

#include "store/store.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using domain::Shortage;
using domain::WaitCause;
using domain::WaitReason;

const WallTime kReasonNow{1'790'000'000'000ms};

std::string text(const WaitReason& reason) { return reason_text(reason, kReasonNow); }

TEST(ReasonText, every_cause_has_a_text) {
  for (const WaitCause cause : domain::kWaitCauses) {
    EXPECT_FALSE(text({.cause = cause, .detail = "x"}).empty()) << to_string(cause);
  }
  EXPECT_EQ(text({.cause = WaitCause::session, .behind = "abc", .behind_state = domain::RunState::running}),
            "an earlier run of its session has not ended: abc is running");
  EXPECT_EQ(text({.cause = WaitCause::delay, .until = kReasonNow + 5min}), "delayed start, for 5m more");
  EXPECT_EQ(text({.cause = WaitCause::backoff, .until = kReasonNow - 1s}), "back-off after a failed attempt, due now");
  EXPECT_EQ(text({.cause = WaitCause::quota, .limit = "account:x", .until = kReasonNow + 1h}),
            "parked: account:x is paused, for 1h more");
  EXPECT_EQ(text({.cause = WaitCause::person}), "parked: it waits for a person");
  EXPECT_EQ(text({.cause = WaitCause::place, .place = 3}), "number 3 in the queue of its agent");
  EXPECT_EQ(text({.cause = WaitCause::place, .place = store::kPlaceMax}),
            "number 1000 or later in the queue of its agent");
  EXPECT_EQ(text({.cause = WaitCause::workers, .capacity = 0}), "the pool has no workers");
  EXPECT_EQ(text({.cause = WaitCause::workers, .capacity = 4}), "all 4 workers of this daemon are busy");
  EXPECT_EQ(text({.cause = WaitCause::agent}), "this daemon has no file for its agent");
  EXPECT_EQ(text({.cause = WaitCause::store, .detail = "the disk is full"}),
            "its output can't be stored: the disk is full");
  EXPECT_EQ(text({.cause = WaitCause::shortage, .detail = "pipe: Too many open files"}), "pipe: Too many open files");
}

TEST(ReasonText, a_limit_names_its_holders_and_the_line) {
  WaitReason reason{.cause = WaitCause::limit, .limit = "gpu", .capacity = 2, .held = 2};
  EXPECT_EQ(text(reason), "no free permit: gpu: 2 of 2 held");
  reason.holders = {{.run = "abc", .agent = "review", .since = kReasonNow - 90s},
                    {.label = "train", .pid = 7, .since = kReasonNow - 5min},
                    {},
                    {.run = "def"}};
  reason.weight = 2;
  reason.ahead = 1;
  EXPECT_EQ(text(reason),
            "no free permit: gpu: 2 of 2 held by abc of review (1m), train (pid 7, 5m), another tool, by flock and "
            "1 more; it needs 2; 1 ahead in line");
  reason.holders.clear();
  reason.weight = 1;
  reason.ahead = 0;
  reason.indirect = true;
  EXPECT_EQ(text(reason),
            "behind other runs of its agent in the queue; the first of them waits: no free permit: gpu: 2 of 2 held; "
            "the first of them is next in line");
  reason.ahead = 4;
  EXPECT_TRUE(text(reason).ends_with("; 4 ahead of the first of them in line")) << text(reason);
}

TEST(ReasonText, a_holder_of_several_units_is_named_once_with_its_peculiarities) {
  WaitReason reason{.cause = WaitCause::limit, .limit = "gpu", .capacity = 3, .held = 3};
  const domain::LimitEntry plain{.label = "train", .pid = 7, .since = kReasonNow - 5min};
  reason.holders = {plain, plain, plain};
  EXPECT_EQ(limit_text(reason, kReasonNow), "gpu: 3 of 3 held by train (pid 7, 5m)");
  domain::LimitEntry odd = plain;
  odd.user = "eve";
  odd.unjudged = true;
  EXPECT_EQ(holder_text(odd, kReasonNow),
            "train (pid 7, 5m) of eve, which was killed; only that user or root can check for leftover processes "
            "and end them");
  odd = plain;
  odd.other_container = true;
  EXPECT_EQ(holder_text(odd, kReasonNow),
            "train (pid 7, 5m) in another container (if that container is gone for good, empty the slot's file)");
  odd = plain;
  odd.swept = true;
  odd.counts_to = 2;
  EXPECT_EQ(holder_text(odd, kReasonNow),
            "train (pid 7, 5m), which was killed; its leftover processes are being ended, which uses the capacity 2");
}

TEST(ReasonText, a_holder_is_named_by_its_run_and_title_before_its_process) {
  domain::LimitEntry entry{.run = "abc", .label = "Fix the test", .pid = 7, .since = kReasonNow - 5min};
  EXPECT_EQ(holder_text(entry, kReasonNow), "abc “Fix the test” (pid 7, 5m)");
  entry.agent = "review";
  entry.title = "Fix it";
  EXPECT_EQ(holder_text(entry, kReasonNow), "abc of review “Fix it” (pid 7, 5m)");
  entry.title.clear();
  entry.label = "review";
  EXPECT_EQ(holder_text(entry, kReasonNow), "abc of review (pid 7, 5m)") << "the label repeats the agent";
  entry.since.reset();
  entry.pid.reset();
  EXPECT_EQ(holder_text(entry, kReasonNow), "abc of review") << "an unknown age is not shown";
  EXPECT_EQ(holder_text({.label = "train", .pid = 7}, kReasonNow), "train (pid 7)");
}

TEST(ReasonText, every_verdict_has_a_text) {
  engine::AttemptLane lane;
  EXPECT_EQ(verdict_text(lane), "");
  lane.ended = kReasonNow;
  lane.state = domain::RunState::queued;
  for (const domain::VerdictRule rule : domain::kVerdictRules) {
    lane.verdict = domain::VerdictRecord{.rule = rule};
    EXPECT_FALSE(verdict_text(lane).empty()) << to_string(rule);
  }
  using domain::VerdictRule;
  lane.verdict = domain::VerdictRecord{.rule = VerdictRule::transient, .attempt = 1, .attempts_max = 3, .after = 5s};
  EXPECT_EQ(verdict_text(lane), "attempt 1 of 3: repeated after 5.0s");
  lane.state = domain::RunState::expired;
  EXPECT_EQ(verdict_text(lane), "not repeated: it ended before the next attempt could begin");
  lane.state = domain::RunState::parked;
  lane.verdict =
      domain::VerdictRecord{.rule = VerdictRule::quota, .after = 5min, .limit = "account:x", .resumes = true};
  EXPECT_EQ(verdict_text(lane),
            "a rate limit: parked for 5m, and account:x is paused; the next attempt continues the conversation");
  lane.verdict = domain::VerdictRecord{.rule = VerdictRule::attempts, .attempt = 3, .attempts_max = 3};
  EXPECT_EQ(verdict_text(lane), "not repeated: that was attempt 3 of 3");
}

TEST(ReasonText, the_wait_of_an_attempt_has_a_text) {
  EXPECT_EQ(text({.cause = WaitCause::network, .detail = "no route"}),
            "it waits for the network or its provider (no route)");
  EXPECT_EQ(text({.cause = WaitCause::leftovers}),
            "it waits until the processes of an earlier attempt have ended; they are being ended");
  EXPECT_EQ(text({.cause = WaitCause::ending, .detail = "by a person"}), "its processes are being ended (by a person)");
  EXPECT_EQ(text({.cause = WaitCause::ending, .beyond = "pid 7 (sleep)", .detail = "by a person"}),
            "its processes are being ended (by a person); Stint may not signal pid 7 (sleep), which runs as another "
            "user: end it as that user, or as root");
}

TEST(ReasonText, a_pause_names_the_run_that_caused_it) {
  EXPECT_EQ(text({.cause = WaitCause::paused, .limit = "agent:x"}),
            "agent:x is paused; `stint resume agent:x` ends that");
  EXPECT_EQ(text({.cause = WaitCause::paused, .limit = "account:x", .behind = "abc", .detail = "log in"}),
            "account:x is paused; `stint resume account:x` ends that. It is paused since run abc was parked: log in");
}

TEST(ReasonText, a_shortage_names_amount_and_bound) {
  using Kind = Shortage::Kind;
  EXPECT_EQ(shortage_text({.kind = Kind::memory, .amount = 100 << 20, .bound = 256 << 20}),
            "only 100 MiB of memory are free; a run needs 256 to begin");
  EXPECT_EQ(shortage_text({.kind = Kind::descriptors, .amount = 9, .bound = 10}),
            "9 of 10 file descriptors are in use");
  EXPECT_EQ(shortage_text({.kind = Kind::checkout, .path = "/a\033[2J"}),
            "the checkout /a?[2J no longer exists: it was deleted or moved");
}

}  // namespace
}  // namespace stint::cli
