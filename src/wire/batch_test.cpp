#include "wire/batch.hpp"

#include <gtest/gtest.h>

namespace stint::wire {
namespace {

TEST(BatchWire, reads_a_request_with_every_member_of_a_filter) {
  const auto request = read_batch_request(
      R"({"action":"retry","expect":3,"filter":{"state":["failed","expired"],"hold":["none"],"agent":"a","session":"s",)"
      R"("parent":"abcdefghijkl","q":"Foo%","since":"2026-11-16T03:00:00Z","until":"2026-11-17T03:00:00+01:00"}})");
  ASSERT_TRUE(request) << request.error().describe();
  EXPECT_EQ(request->action, store::BatchAction::retry);
  EXPECT_EQ(request->expect, 3U);
  EXPECT_EQ(request->filter.search, "foo%");
  EXPECT_EQ(
      to_json(request->filter),
      R"({"state":["failed","expired"],"hold":["none"],"agent":"a","session":"s","parent":"abcdefghijkl","q":"foo%",)"
      R"("since":"2026-11-16T03:00:00.000Z","until":"2026-11-17T02:00:00.000Z"})");
  const auto again = read_batch_request(to_json(*request));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), to_json(*request));
}

TEST(BatchWire, refuses_what_it_does_not_know) {
  for (const char* const body : {
           R"({})",
           R"({"action":"cancel"})",
           R"({"action":"delete","filter":{"q":"x"},"expect":1})",
           R"({"action":"cancel","filter":{"q":"x"}})",
           R"({"action":"cancel","filter":[],"expect":1})",
           R"({"action":"cancel","filter":{"q":""},"expect":1})",
           R"({"action":"cancel","filter":{"state":[]},"expect":1})",
           R"({"action":"cancel","filter":{"state":"queued"},"expect":1})",
           R"({"action":"cancel","filter":{"state":["queue"]},"expect":1})",
           R"({"action":"cancel","filter":{"hold":["x"]},"expect":1})",
           R"({"action":"cancel","filter":{"since":"yesterday"},"expect":1})",
           R"({"action":"cancel","filter":{"typo":"x"},"expect":1})",
           R"({"action":"cancel","filter":{"q":"x"},"expect":-1})",
           R"({"action":"cancel","filter":{"q":"x"},"expect":1,"dry_run":"yes"})",
           R"({"action":"cancel","filter":{"q":null},"expect":1})",
       }) {
    const auto request = read_batch_request(body);
    EXPECT_FALSE(request) << body;
    if (!request) EXPECT_EQ(request.error(), Errc::invalid) << body;
  }
  EXPECT_TRUE(read_batch_request(R"({"action":"cancel","filter":{"q":"x"},"dry_run":true})"));
}

TEST(BatchWire, reads_what_it_writes) {
  store::Batch batch;
  batch.id = "abcdefghijkl";
  batch.action = store::BatchAction::retry;
  batch.state = store::BatchState::stopped;
  batch.filter = R"({"agent":"a"})";
  batch.matched = 9;
  batch.done = 4;
  batch.skipped = 2;
  batch.failed = 1;
  batch.failures = {{"bcdefghijklm", "no \"such\" thing"}};
  batch.created_at = WallTime(std::chrono::milliseconds(1000));
  batch.ended_at = WallTime(std::chrono::milliseconds(2000));
  const std::string text = to_json(batch);
  EXPECT_TRUE(text.contains(R"("left":2)")) << text;
  const auto read = read_batch(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), text);
  const auto listed = read_batches(to_json(std::vector{batch}, "7"));
  ASSERT_TRUE(listed);
  EXPECT_TRUE(listed->at(0).failures.empty());
  const auto answer = read_batch_answer(text);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->batch->id, batch.id);
  const auto counted = read_batch_answer(dry_run_to_json(store::BatchAction::cancel, 12));
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->matched, 12U);
  EXPECT_FALSE(counted->batch);
}

}  // namespace
}  // namespace stint::wire
