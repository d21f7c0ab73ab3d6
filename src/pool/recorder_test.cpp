#include "pool/recorder.hpp"

#include "pool/plain_run_codec.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

namespace stint::pool {
namespace {

using namespace std::chrono_literals;

/// Takes a second for each note.
class SlowStore final : public store::MemoryStore {
 public:
  explicit SlowStore(const domain::System& system) : MemoryStore(system) {}
  Task<Result<bool>> note(store::NodeNumber, store::RunNumber, std::int64_t, std::string, std::string data) override {
    co_await sleep_for(1s);
    notes.push_back(std::move(data));
    co_return true;
  }
  std::vector<std::string> notes;
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
  Recorder recorder_{store_, health_, run_codec_, changes_, 1, store::Claim{}, [] { return false; }};
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

}  // namespace
}  // namespace stint::pool
