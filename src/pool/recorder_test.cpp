#include "pool/recorder.hpp"

#include "pool/plain_run_codec.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

namespace stint::pool {
namespace {

using namespace std::chrono_literals;

/// Takes a second for each write, and refuses writes while it is full.
class SlowStore final : public store::MemoryStore {
 public:
  explicit SlowStore(const domain::System& system) : MemoryStore(system) {}
  Task<Result<bool>> note(store::NodeNumber, store::AttemptKey, std::string, std::string data) override {
    co_await sleep_for(1s);
    if (full) co_return no_room();
    notes.push_back(std::move(data));
    co_return true;
  }
  Task<Result<bool>> append_output(store::NodeNumber, store::AttemptKey, std::string text) override {
    co_await sleep_for(1s);
    if (full) co_return no_room();
    if (refuses_text) co_return fail(Errc::invalid, "not this text");
    output += text;
    co_return !stale;
  }
  Task<Result<bool>> provider_answered(store::NodeNumber, store::AttemptKey) override {
    ++answers;
    co_return true;
  }
  std::vector<std::string> notes;
  std::string output;
  int answers = 0;
  bool full = false, refuses_text = false, stale = false;

 private:
  static std::unexpected<Error> no_room() { return fail(Error(Errc::unavailable, Retry::safe, "the disk is full")); }
};

class RecorderTest : public testing::Test {
 protected:
  ~RecorderTest() override {
    scope_.cancel();
    sim_.settle();
  }
  void record(domain::WorkUpdate::Kind kind, std::string text) {
    domain::WorkUpdate update;
    update.kind = kind;
    update.text = std::move(text);
    recorder_.record(update);
  }
  /// How long the end of a run waits for its output to be stored.
  Duration flush() {
    const TimePoint begin = sim_.now();
    bool done = false;
    scope_.spawn([](Recorder& recorder, bool& ended) -> Task<> {
      co_await recorder.flush();
      ended = true;
    }(recorder_, done));
    while (!done) sim_.advance(100ms);
    return sim_.now() - begin;
  }

  domain::System system_{[] { return WallTime(); }, [] { return std::uint64_t{1}; }};
  Simulator sim_;
  SlowStore store_{system_};
  domain::NoLog no_log_;
  StoreHealth health_{sim_, no_log_, [] { return ~std::uint64_t{0}; }};
  PlainRunCodec run_codec_;
  events::Changes changes_;
  Recorder recorder_{store_, health_, run_codec_, changes_, store::NodeNumber{1}, store::Claim{}, [] { return false; }};
  RootScope scope_{sim_};
};

TEST_F(RecorderTest, writes_only_the_newest_of_the_conversations_that_wait_for_the_store) {
  for (int i = 0; i < 150; ++i) record(domain::WorkUpdate::Kind::conversation, "c" + std::to_string(i));
  EXPECT_LT(flush(), 5s) << "a cancel does not wait for all of them";
  EXPECT_EQ(store_.notes, std::vector<std::string>{"c149"});
  EXPECT_EQ(recorder_.conversation(), "c149");
}

TEST_F(RecorderTest, conversations_per_attempt_are_bounded) {
  scope_.spawn(recorder_.run());
  for (int i = 0; i < 1000; ++i) {
    record(domain::WorkUpdate::Kind::conversation, "c" + std::to_string(i));
    sim_.advance(2s);
  }
  EXPECT_EQ(store_.notes.size(), Recorder::kConversationsMax);
  EXPECT_EQ(recorder_.notes_left_out(), 1000 - Recorder::kConversationsMax);
  EXPECT_EQ(recorder_.conversation(), store_.notes.back()) << "the store has the last one";
}

TEST_F(RecorderTest, ignores_a_conversation_whose_name_is_too_long) {
  record(domain::WorkUpdate::Kind::conversation, "c");
  record(domain::WorkUpdate::Kind::conversation, std::string(4 << 20, 'x'));
  flush();
  EXPECT_EQ(store_.notes, std::vector<std::string>{"c"});
  EXPECT_EQ(recorder_.notes_left_out(), 1U);
}

TEST_F(RecorderTest, keeps_the_order_of_other_notes) {
  record(domain::WorkUpdate::Kind::conversation, "c1");
  for (int i = 0; i < 3; ++i) record(domain::WorkUpdate::Kind::tool, "t" + std::to_string(i));
  record(domain::WorkUpdate::Kind::conversation, "c2");
  flush();
  EXPECT_EQ(store_.notes, (std::vector<std::string>{"t0", "t1", "t2", "c2"}));
}

TEST_F(RecorderTest, too_much_text_holds_the_work_until_the_store_has_it) {
  std::vector<bool> holds;
  recorder_.on_full([&](bool full) { holds.push_back(full); });
  scope_.spawn(recorder_.run());
  record(domain::WorkUpdate::Kind::text, std::string(Recorder::kTextFull - 1, 'x'));
  EXPECT_TRUE(holds.empty());
  record(domain::WorkUpdate::Kind::text, "yz");
  record(domain::WorkUpdate::Kind::text, "more");
  EXPECT_EQ(holds, std::vector<bool>{true}) << "once, however much arrives before the work has paused";
  sim_.advance(3s);
  EXPECT_EQ(holds, (std::vector<bool>{true, false}));
  EXPECT_EQ(store_.output.size(), Recorder::kTextFull + 5) << "nothing is lost";
  EXPECT_EQ(recorder_.bytes_dropped(), 0U);
}

TEST_F(RecorderTest, no_output_is_lost_while_the_store_is_full_for_a_while) {
  scope_.spawn(recorder_.run());
  store_.full = true;
  record(domain::WorkUpdate::Kind::text, "first ");
  sim_.advance(Recorder::kRefusedMax / 2);
  EXPECT_EQ(store_.output, "");
  store_.full = false;
  record(domain::WorkUpdate::Kind::text, "second");
  sim_.advance(Recorder::kRefusedMax);
  EXPECT_EQ(store_.output, "first second");
  EXPECT_EQ(recorder_.bytes_dropped(), 0U);
}

TEST_F(RecorderTest, output_refused_for_too_long_is_dropped_counted_and_reported) {
  scope_.spawn(recorder_.run());
  store_.full = true;
  record(domain::WorkUpdate::Kind::text, "12345");
  record(domain::WorkUpdate::Kind::tool, "t");
  sim_.advance(3 * Recorder::kRefusedMax);
  EXPECT_EQ(recorder_.bytes_dropped(), 5U);
  EXPECT_EQ(recorder_.notes_left_out(), 1U);
  store_.full = false;
  record(domain::WorkUpdate::Kind::text, "after");
  sim_.advance(3 * Recorder::kRefusedMax);
  EXPECT_EQ(store_.output, "after");
  ASSERT_EQ(store_.notes.size(), 1U);
  EXPECT_TRUE(store_.notes[0].starts_with("5 bytes of its output are missing")) << store_.notes[0];
}

TEST_F(RecorderTest, keeps_the_conversation_while_the_store_is_full) {
  scope_.spawn(recorder_.run());
  store_.full = true;
  record(domain::WorkUpdate::Kind::conversation, "c1");
  sim_.advance(3 * Recorder::kRefusedMax);
  store_.full = false;
  sim_.advance(3 * Recorder::kRefusedMax);
  EXPECT_EQ(store_.notes, std::vector<std::string>{"c1"}) << "without it the run could not be continued";
}

TEST_F(RecorderTest, the_end_of_a_stopped_run_does_not_wait_long_for_a_full_store) {
  store_.full = true;
  record(domain::WorkUpdate::Kind::text, "12345");
  recorder_.hurry();
  EXPECT_LT(flush(), 2 * Recorder::kRefusedAtStopMax + 2s);
  EXPECT_EQ(recorder_.bytes_dropped(), 5U);
}

TEST_F(RecorderTest, text_refused_for_good_is_left_out_and_a_note_reports_it) {
  store_.refuses_text = true;
  record(domain::WorkUpdate::Kind::text, "12345");
  flush();
  store_.refuses_text = false;
  record(domain::WorkUpdate::Kind::text, "after");
  flush();
  EXPECT_EQ(store_.output, "after");
  ASSERT_EQ(store_.notes.size(), 1U);
  EXPECT_TRUE(store_.notes[0].starts_with("5 bytes of its output are missing here: the store refused them"))
      << store_.notes[0];
}

TEST_F(RecorderTest, notes_that_wait_for_the_store_are_bounded) {
  for (std::size_t i = 0; i < Recorder::kNotesMax + 7; ++i) record(domain::WorkUpdate::Kind::tool, "t");
  flush();
  EXPECT_EQ(store_.notes.size(), Recorder::kNotesMax);
  EXPECT_EQ(recorder_.notes_left_out(), 7U);
}

TEST_F(RecorderTest, reports_the_first_answer_of_the_provider_once) {
  domain::WorkUpdate update;
  update.kind = domain::WorkUpdate::Kind::usage;
  update.usage.out = 5;
  recorder_.record(update);
  flush();
  EXPECT_EQ(store_.answers, 0) << "nothing watches for an answer";
  recorder_.watch_for_answer();
  record(domain::WorkUpdate::Kind::text, "an error of the program itself");
  update.usage = {};
  update.usage.fresh_in = 5;
  recorder_.record(update);
  flush();
  EXPECT_EQ(store_.answers, 0) << "a refused call is not an answer";
  update.usage.out = 1;
  recorder_.record(update);
  recorder_.record(update);
  record(domain::WorkUpdate::Kind::tool, "t");
  flush();
  EXPECT_EQ(store_.answers, 1);
}

TEST_F(RecorderTest, updates_are_ignored_after_another_node_owns_the_run) {
  store_.stale = true;
  record(domain::WorkUpdate::Kind::text, "a");
  flush();
  record(domain::WorkUpdate::Kind::text, "b");
  record(domain::WorkUpdate::Kind::tool, "t");
  flush();
  EXPECT_EQ(store_.output, "a");
  EXPECT_TRUE(store_.notes.empty());
  EXPECT_EQ(recorder_.bytes_dropped(), 0U) << "not missing: another node records the run";
}

}  // namespace
}  // namespace stint::pool
