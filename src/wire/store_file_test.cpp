#include "wire/store_file.hpp"

#include <gtest/gtest.h>

#include <random>

namespace stint::wire {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using store::AgentEntry;
using store::LimitState;
using store::Moved;
using store::RunRecord;

const WallTime kDay{std::chrono::milliseconds(1'800'000'000'123)};

RunRecord some_run() {
  RunRecord record;
  store::Run& run = record.run;
  run.id = "abcdefghij23";
  run.agent = "review";
  run.session = "pr 42";
  run.parent = "bcdefghij234";
  run.key = "k\"1";
  run.state = RunState::parked;
  run.tokens = 12;
  run.cost_micros = 3400;
  run.hold = domain::Hold::quota;
  run.error = "429 \xE2\x80\xA6";
  run.input = R"({"pr": 42})";
  run.result = "[]";
  run.attempt = 2;
  run.lost = 1;
  run.fence = store::Fence{3};
  run.seq = 2;
  run.unsafe = true;
  run.on_crash = domain::OnCrash::resume;
  run.created_at = kDay;
  run.not_before = kDay + 1ms;
  run.deadline = kDay + 2ms;
  run.expires_at = kDay + 2ms;
  run.started_at = kDay + 4ms;
  record.rank = 1'799'999'400'123;
  record.budget = 10min;
  record.budget_left = 9min;
  record.parked_on = "account:x";
  record.families = {{.head = "abcdefghij23", .used = {}},
                     {.head = "bcdefghij234", .used = {.tokens = 99, .cost_micros = 5000}}};
  record.events.resize(2);
  for (store::Event& event : record.events) event.run = run.id;
  store::Event& first = record.events[0];
  first.seq = 1;
  first.cause = "enqueued";
  first.state = RunState::queued;
  first.at = kDay;
  store::Event& last = record.events[1];
  last.seq = 2;
  last.fence = store::Fence{3};
  last.cause = "park";
  last.state = RunState::parked;
  last.hold = domain::Hold::quota;
  last.node = store::NodeNumber{7};
  last.error = "429";
  last.data = "{}";
  last.at = kDay + 5ms;
  record.output = {.head = "head", .tail = std::string("\0\xFF\x01", 3), .bytes = 300'000};
  return record;
}

TEST(StoreFile, a_run_comes_back_as_it_was) {
  const std::string line = to_json(some_run());
  const auto read = parse_store_line(line);
  ASSERT_TRUE(read) << read.error().describe();
  const auto& record = std::get<RunRecord>(*read);
  EXPECT_EQ(to_json(record), line);
  EXPECT_EQ(record.output.tail, std::string("\0\xFF\x01", 3)) << "no byte is lost";
  EXPECT_EQ(record.run.seq, 2);
  EXPECT_EQ(record.run.tokens, 12);
  EXPECT_EQ(record.run.cost_micros, 3400);
  EXPECT_EQ(record.families, some_run().families);
  EXPECT_EQ(record.run.expires_at, kDay + 2ms);
  EXPECT_EQ(record.events[1].node, store::NodeNumber{7});
  EXPECT_EQ(record.events[1].at, kDay + 5ms);
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(StoreFile, agents_limits_and_counts_come_back) {
  AgentEntry agent;
  agent.name = "review";
  agent.limits = {{"gpu", 2}, {"model:opus", 1}};
  agent.queued_max = 5;
  agent.lost_max = 7;
  EXPECT_EQ(std::get<AgentEntry>(parse_store_line(to_json(agent)).value()), agent);

  LimitState limit;
  limit.name = "gpu";
  limit.capacity = 3;
  limit.paused = true;
  limit.paused_until = kDay;
  const auto read = std::get<LimitState>(parse_store_line(to_json(limit)).value());
  EXPECT_EQ(read.capacity, 3U);
  EXPECT_TRUE(read.paused);
  EXPECT_EQ(read.paused_until, kDay);

  const Moved counts{.agents = 1, .limits = 2, .runs = 3, .events = 4};
  EXPECT_EQ(std::get<Moved>(parse_store_line(store_file_end(counts)).value()), counts);
  EXPECT_TRUE(std::holds_alternative<StoreFileHead>(parse_store_line(store_file_head()).value()));
}

TEST(StoreFile, text_that_no_database_takes_is_repaired) {
  RunRecord record = some_run();
  record.run.error = std::string("a\0b\xC3", 4);
  const auto read = parse_store_line(to_json(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<RunRecord>(*read).run.error,
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
}

TEST(StoreFile, an_invalid_line_is_refused_with_its_reason) {
  for (const char* const line :
       {"", "x", "{}", "[]", R"({"run":1})", R"({"ran":{}})", R"({"run":{}})",
        R"({"run":{"id":"abcdefghij23","state":"asleep"}})", R"({"run":{"id":7}})", R"({"agent":{}})",
        R"({"agent":{"name":"a","queued_max":-1}})", R"({"agent":{"name":"a","limits":[1]}})",
        R"({"limit":{"name":"a","capacity":"3"}})", R"({"end":{"runs":-1}})",
        R"({"run":{"id":"abcdefghij23","state":"queued","head_hex":"0g"}})",
        R"({"run":{"id":"abcdefghij23","state":"queued","events":[{"state":"x"}]}})"}) {
    const auto read = parse_store_line(line);
    EXPECT_FALSE(read) << line;
    if (!read) EXPECT_EQ(read.error(), Errc::invalid) << line;
  }
  const auto newer = parse_store_line(R"({"stint_export":2})");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error(), Errc::denied);
  EXPECT_NE(newer.error().what().find("newer"), std::string::npos);
}

TEST(StoreFile, a_damaged_line_never_crashes_the_reader) {
  const std::string whole = to_json(some_run());
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string line = whole;
    for (int j = 0; j < 3; ++j) {
      const std::size_t at = random() % line.size();
      switch (random() % 3) {
        case 0: line[at] = static_cast<char>(random()); break;
        case 1: line.erase(at, 1 + random() % 9); break;
        default: line.insert(at, 1, "0\"{}[],:-"[random() % 9]);
      }
    }
    (void)parse_store_line(line);
  }
}

}  // namespace
}  // namespace stint::wire
