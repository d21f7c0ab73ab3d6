// The SQLite store on a disk that is slow, fails, fills up and loses unsynced writes: sqlite_faulty_disk.hpp.
#include "os/test_folder.hpp"
#include "store/audit.hpp"
#include "store/sqlite_faulty_disk.hpp"
#include "store/sqlite_opened.hpp"

#include <cstdlib>
#include <map>
#include <random>
#include <thread>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using Fault = FaultyDisk::Fault;

/// For more seeds: STINT_SEEDS=300.
std::uint64_t seeds(std::uint64_t usual) {
  const char* const asked = std::getenv("STINT_SEEDS");  // NOLINT(concurrency-mt-unsafe): before any thread
  return asked == nullptr ? usual : std::strtoull(asked, nullptr, 10);
}

void expect_sound(Opened& opened) { EXPECT_EQ(opened.run(opened.store().check()).value(), std::vector<std::string>()); }

// ---- power cuts ----------------------------------------------------------------------------------------------------

/// Submits until the power is cut, `in` operations from now; then opens the store again on what is left. Returns how
/// many of the answered submits are lost; none: the power was not cut, because fewer operations were needed.
std::optional<int> lost_in_power_cut(FaultyDisk& disk, const std::string& path, std::uint64_t in, std::uint64_t seed) {
  constexpr std::uint64_t kSubmits = 3;
  std::uint64_t answered = 0;
  {
    Opened opened(path);
    opened.define();
    disk.fail_in(in, Fault::power_cut);
    while (answered < kSubmits && opened.submit(answered + 1)) ++answered;
    if (!disk.has_failed()) return std::nullopt;
  }
  disk.lose_unsynced(seed);
  Opened after(path);
  EXPECT_TRUE(after.ok()) << after.error().describe();
  if (!after.ok()) return 0;
  int lost = 0;
  for (std::uint64_t number = 1; number <= answered; ++number) {
    const auto found = after.run(after.store().find(Opened::id_of(number)));
    EXPECT_TRUE(found) << found.error().describe();
    if (found && !*found) ++lost;
  }
  if (lost == 0) expect_sound(after);
  return lost;
}

TEST(SqliteDisk, answered_submits_survive_a_power_cut_at_any_moment) {
  std::uint64_t in = 1;
  for (;; ++in) {
    SCOPED_TRACE("power goes at operation " + std::to_string(in));
    FaultyDisk disk;
    const os::TestFolder folder;
    const auto lost = lost_in_power_cut(disk, folder / "x.db", in, in);
    if (!lost) break;
    ASSERT_EQ(*lost, 0);
  }
  EXPECT_GT(in, 10U);
}

/// Like synchronous=OFF: proves that the test above can fail.
TEST(SqliteDisk, a_power_cut_loses_answered_submits_if_nothing_is_synced) {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    FaultyDisk disk;
    disk.ignore_syncs();
    const os::TestFolder folder;
    const std::string path = folder / "x.db";
    std::uint64_t answered = 0;
    {
      Opened opened(path);
      opened.define();
      while (answered < 5 && opened.submit(answered + 1)) ++answered;
      disk.fail_in(1, Fault::power_cut);
    }
    disk.lose_unsynced(seed);
    Opened after(path);
    if (!after.ok()) {
      ++lost;
      continue;
    }
    for (std::uint64_t number = 1; number <= answered; ++number) {
      const auto found = after.run(after.store().find(Opened::id_of(number)));
      if (!found || !*found) ++lost;
    }
  }
  EXPECT_GT(lost, 0);
}

/// SQLite copies the log into the database when it has 1000 pages.
TEST(SqliteDisk, answered_submits_survive_a_power_cut_during_a_checkpoint) {
  for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    FaultyDisk disk;
    const os::TestFolder folder;
    const std::string path = folder / "x.db";
    std::uint64_t answered = 0;
    {
      Opened opened(path);
      opened.define();
      NewRun large = Opened::fresh(1);
      large.input = std::string(3'900'000, 'y');
      ASSERT_TRUE(opened.run(opened.store().enqueue({large})));
      disk.fail_in(1 + random() % 2000, Fault::power_cut);
      for (answered = 1; answered < 60; ++answered) {
        NewRun next = Opened::fresh(answered + 1);
        next.input = std::string(20'000, 'z');
        if (!opened.run(opened.store().enqueue({next}))) break;
      }
    }
    disk.lose_unsynced(seed);
    Opened after(path);
    ASSERT_TRUE(after.ok()) << after.error().describe();
    for (std::uint64_t number = 1; number <= answered; ++number) {
      EXPECT_TRUE(after.run(after.store().find(Opened::id_of(number))).value()) << number;
    }
    expect_sound(after);
  }
}

// ---- a slow disk ---------------------------------------------------------------------------------------------------

/// Polls while the disk syncs, and once more after the answer.
TEST(SqliteDisk, a_run_is_ready_when_its_submit_is_answered_on_a_slow_disk) {
  FaultyDisk disk;
  const os::TestFolder folder;
  Opened here(folder / "x.db"), there(folder / "x.db");
  here.define();
  const NodeNumber node = here.run(here.store().enrol("here")).value();
  ASSERT_TRUE(there.run(there.store().enrol("there")));
  std::uint64_t seen = 0;
  disk.hold_syncs();
  bool answered = false;
  std::thread submits([&] {
    Opened third(folder / "x.db");
    answered = third.submit(1).has_value();
  });
  const TimePoint until = here.reactor().now() + 150ms;
  while (here.reactor().now() < until || !disk.is_sync_held()) {
    EXPECT_TRUE(here.run(here.store().ready(kReadyMax))->empty());
    EXPECT_TRUE(there.run(there.store().ready(kReadyMax))->empty());
    seen = here.run(here.store().wait(seen, 10ms)).value();
  }
  disk.let_syncs_go();
  submits.join();
  ASSERT_TRUE(answered);
  EXPECT_EQ(here.run(here.store().ready(kReadyMax))->size(), 1U);
  EXPECT_EQ(there.run(there.store().ready(kReadyMax))->size(), 1U);
  EXPECT_NE(here.run(here.store().wait(seen, 10s)).value(), seen);
  EXPECT_EQ(here.run(here.store().claim(node, "a", 1))->size(), 1U);
  EXPECT_TRUE(here.run(here.store().beat(node))->stops.empty());
  EXPECT_TRUE(there.run(there.store().cancel(Opened::id_of(1))));
  EXPECT_EQ(here.run(here.store().beat(node))->stops.size(), 1U);
}

/// The check before the commit passes, the one after it fails.
TEST(SqliteDisk, a_commit_into_a_file_that_is_being_moved_is_not_answered_as_done) {
  FaultyDisk disk;
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  Opened opened(path);
  opened.define();
  disk.hold_syncs();
  bool moved = false;
  std::thread moves([&] {
    while (!disk.is_sync_held()) std::this_thread::yield();
    std::filesystem::rename(path, folder / "away");
    moved = true;
    disk.let_syncs_go();
  });
  const auto answer = opened.submit(1);
  moves.join();
  ASSERT_TRUE(moved);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), Errc::unavailable);
  EXPECT_EQ(answer.error().retry(), Retry::unknown) << "the file may be put back";
  std::filesystem::rename(folder / "away", path);
  EXPECT_FALSE(opened.submit(1)->created);
}

// ---- errors --------------------------------------------------------------------------------------------------------

TEST(SqliteDisk, a_node_whose_commit_fails_leaves_no_lease_behind) {
  for (const Fault fault : {Fault::full, Fault::io_error}) {
    FaultyDisk disk;
    const os::TestFolder folder;
    const std::string path = folder / "x.db";
    Opened here(path), there(path);
    disk.fail_in(1, fault);
    EXPECT_FALSE(here.run(here.store().enrol("here")));
    disk.heal();
    EXPECT_TRUE(std::filesystem::is_empty(path + ".nodes"));
    const auto other = there.run(there.store().enrol("there"));
    ASSERT_TRUE(other) << other.error().describe();  // it gets the rolled-back number
    EXPECT_TRUE(there.run(there.store().beat(*other))->alive);
    there.define();
    EXPECT_TRUE(there.submit(1));
    EXPECT_EQ(there.run(there.store().claim(*other, "a", 1))->size(), 1U);
    EXPECT_EQ(here.run(here.store().tick())->lost, 0U) << "it is alive";
    ASSERT_TRUE(there.run(there.store().drop_lease(*other)));
    EXPECT_EQ(here.run(here.store().tick())->lost, 1U) << "its death is detected";
  }
}

TEST(SqliteDisk, a_full_disk_is_reported_without_sql) {
  for (std::uint64_t in = 1; in <= 6; ++in) {
    FaultyDisk disk;
    const os::TestFolder folder;
    Opened opened(folder / "x.db");
    opened.define();
    disk.fail_in(in, Fault::full);
    for (std::uint64_t number = 1; number < 50; ++number) {
      const auto done = opened.submit(number);
      if (done) continue;
      const std::string message = done.error().describe();
      EXPECT_NE(message.find("the disk is full. Free some space"), std::string::npos) << message;
      for (const char* const word : {"INSERT", "UPDATE", "SELECT", "BEGIN", "COMMIT", "PRAGMA"}) {
        EXPECT_EQ(message.find(word), std::string::npos) << message;
      }
      break;
    }
  }
}

/// Here SQLite rolls back the whole group by itself.
TEST(SqliteDisk, a_read_error_within_a_group_fails_its_steps_and_keeps_none) {
  for (std::uint64_t in = 1; in < 200; ++in) {
    SCOPED_TRACE("read " + std::to_string(in));
    FaultyDisk disk;
    const os::TestFolder folder;
    Opened opened(folder / "x.db");
    opened.define();
    {
      Opened other(folder / "x.db");  // its writes evict pages from the cache of the first store
      ASSERT_TRUE(other.submit(100));
    }
    std::map<std::uint64_t, Result<>> answers;
    auto submit = [&](std::uint64_t number) -> Task<> {
      const auto answer = co_await opened.store().enqueue({Opened::fresh(number)});
      answers.emplace(number, answer ? Result<>() : Result<>(fail(answer.error())));
    };
    disk.fail_reads_in(in, 1);
    {
      RootScope scope(opened.reactor());
      for (std::uint64_t number = 1; number <= 4; ++number) scope.spawn(submit(number));
      EXPECT_TRUE(opened.reactor().run(scope));
    }
    const bool failed = disk.has_failed();
    disk.heal();
    for (const auto& [number, answer] : answers) {
      const bool there = opened.run(opened.store().find(Opened::id_of(number))).value().has_value();
      EXPECT_EQ(there, answer.has_value()) << number << (answer ? "" : ": " + answer.error().describe());
      if (!answer) EXPECT_EQ(answer.error().retry(), Retry::safe) << answer.error().describe();
    }
    expect_sound(opened);
    if (!failed) return;  // the scenario has no more reads
  }
  FAIL() << "the number of reads is not bounded";
}

/// Steps of all kinds, some together, on a disk that sometimes fails. What was answered is stored; what was refused
/// is not, unless the error reports an unknown outcome.
class Trial {
 public:
  explicit Trial(std::uint64_t seed) : random_(seed) { open(); }

  void live(int rounds) {
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      if (chance(3)) {
        const Fault fault = chance(2) ? Fault::full : chance(2) ? Fault::io_error : Fault::power_cut;
        disk_.fail_in(1 + random_() % 12, fault, 1 + random_() % 6);
      }
      act_together();
      if (chance(3)) disk_.heal();
      if (chance(8)) cut_power();
    }
    disk_.heal();
    verify();
  }

 private:
  enum class Known : std::uint8_t { there, absent, unsure };
  struct Submitted {
    Known there = Known::absent;
    std::optional<RunState> ended;  // as the store answered
    std::int64_t output_least = 0, output_most = 0;
  };

  bool chance(std::uint64_t one_of) { return random_() % one_of == 0; }

  void open() {
    opened_ = std::make_unique<Opened>(path_);
    ASSERT_TRUE(opened_->ok()) << opened_->error().describe();
    opened_->define();
    node_.reset();
    claims_.clear();
  }

  void cut_power() {
    disk_.fail_in(1, Fault::power_cut);
    opened_.reset();
    disk_.lose_unsynced(random_());
    open();
    EXPECT_TRUE(opened_->run(opened_->store().tick()));  // running runs are lost and go in doubt
    verify();
  }

  template <class T>
  Known note(const Result<T>& answer) {
    if (answer) return Known::there;
    if (answer.error().retry() == Retry::unknown) return Known::unsure;
    EXPECT_EQ(answer.error().retry(), Retry::safe) << answer.error().describe();
    return Known::absent;
  }

  void act_together() {
    RootScope scope(opened_->reactor());
    const std::uint64_t count = 1 + random_() % 4;
    for (std::uint64_t i = 0; i < count; ++i) {
      switch (random_() % 6) {
        case 0: scope.spawn(enrol_and_claim()); break;
        case 1: scope.spawn(settle()); break;
        case 2: scope.spawn(say()); break;
        case 3: scope.spawn(look()); break;
        default: scope.spawn(submit()); break;
      }
    }
    EXPECT_TRUE(opened_->reactor().run(scope));
  }

  Task<> submit() {
    const std::uint64_t number = ++numbers_;
    const auto answer = co_await store().enqueue({Opened::fresh(number)});
    runs_[Opened::id_of(number)].there = note(answer);
  }
  Task<> enrol_and_claim() {
    if (!node_) {
      const auto node = co_await store().enrol("w");
      (void)note(node);
      if (!node) co_return;
      node_ = *node;
    }
    const auto claims = co_await store().claim(*node_, "a", 2);
    (void)note(claims);
    if (claims) claims_.insert(claims_.end(), claims->begin(), claims->end());
  }
  Task<> settle() {
    if (claims_.empty()) co_return;
    const Claim claim = claims_.front();
    claims_.erase(claims_.begin());
    Settlement end;
    end.attempt = claim.attempt_key();
    end.settle = domain::Settle::succeeded;
    const auto answer = co_await store().settle(*node_, {end});
    const Known known = note(answer);
    if (known == Known::there) runs_[claim.id].ended = answer->front();
    if (known == Known::absent) claims_.push_back(claim);
  }
  Task<> say() {
    if (claims_.empty()) co_return;
    const Claim claim = claims_.front();
    const std::string text(1 + random_() % 5000, 't');
    const auto answer = co_await store().append_output(*node_, claim.attempt_key(), text);
    const Known known = note(answer);
    Submitted& run = runs_[claim.id];
    if (known == Known::there && *answer) run.output_least += std::ssize(text);
    if (known != Known::absent) run.output_most += std::ssize(text);
  }
  Task<> look() {
    const bool beats = node_ && chance(2);
    if (beats) {
      const auto beat = co_await store().beat(*node_);
      if (beat) EXPECT_TRUE(beat->alive);
    } else {
      const auto ticked = co_await store().tick();
      if (ticked) EXPECT_EQ(ticked->lost, 0U);
    }
  }

  void verify() {
    for (const auto& [id, known] : runs_) {
      const auto found = opened_->run(store().find(id));
      ASSERT_TRUE(found) << found.error().describe();
      if (known.there != Known::unsure) EXPECT_EQ(found->has_value(), known.there == Known::there) << id;
      if (!*found) continue;
      if (known.ended) EXPECT_EQ((*found)->state, *known.ended) << id;
      const auto bytes = static_cast<std::int64_t>(opened_->run(store().output(id))->bytes);
      EXPECT_GE(bytes, known.output_least) << id;
      EXPECT_LE(bytes, known.output_most) << id;
    }
    expect_sound(*opened_);
    const auto findings = opened_->run(audit(store()));
    ASSERT_TRUE(findings) << findings.error().describe();
    EXPECT_EQ(findings->findings, std::vector<std::string>());
  }

  SqliteStore& store() { return opened_->store(); }

  std::mt19937_64 random_;
  FaultyDisk disk_;
  const os::TestFolder folder_;
  const std::string path_ = folder_ / "x.db";
  std::unique_ptr<Opened> opened_;
  std::uint64_t numbers_ = 0;
  std::map<std::string, Submitted> runs_;
  std::optional<NodeNumber> node_;
  std::vector<Claim> claims_;
};

TEST(SqliteDisk, answers_are_true_on_a_failing_disk) {
  for (std::uint64_t seed = 1; seed <= seeds(6); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trial(seed).live(30);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace stint::store
