#include "provider/threads.hpp"

#include <gtest/gtest.h>

namespace stint::provider {
namespace {

Ask ask_of(std::string_view body) {
  Result<Ask> ask = read_ask(Protocol::messages, "", body);
  EXPECT_TRUE(ask) << ask.error().what();
  return ask ? std::move(*ask) : Ask();
}

constexpr std::string_view kBegin =
    R"({"model": "m", "thread": {"type": "create"}, "messages": [{"role": "user", "content": "go"}]})";

std::string follow(std::string_view id, std::string_view messages) {
  return R"({"model": "m", "thread": {"type": "continue", "previous_message_id": ")" + std::string(id) +
         R"("}, "messages": )" + std::string(messages) + "}";
}

constexpr std::string_view kResult =
    R"([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "done"}]}])";

TEST(ProviderThreads, a_continuation_counts_turns_from_the_prompt_that_it_does_not_repeat) {
  Threads threads;
  threads.keep("msg_1", ask_of(kBegin));
  Ask second = ask_of(follow("msg_1", kResult));
  EXPECT_EQ(second.prompt, "");
  ASSERT_TRUE(threads.complete(second));
  EXPECT_EQ(second.prompt, "go");
  EXPECT_EQ(second.turn, 1);
  threads.keep("msg_2", second);
  Ask third = ask_of(follow("msg_2", kResult));
  ASSERT_TRUE(threads.complete(third));
  EXPECT_EQ(third.turn, 2);
  Ask resumed = ask_of(follow("msg_2", "[]"));
  ASSERT_TRUE(threads.complete(resumed)) << "a paused turn resumes without a message";
  EXPECT_EQ(resumed.prompt, "go");
}

TEST(ProviderThreads, a_new_user_message_begins_a_new_prompt) {
  Threads threads;
  threads.keep("msg_1", ask_of(kBegin));
  Ask next = ask_of(follow("msg_1", R"([{"role": "user", "content": "and now?"}])"));
  ASSERT_TRUE(threads.complete(next));
  EXPECT_EQ(next.prompt, "and now?");
  EXPECT_EQ(next.turn, 0);
}

TEST(ProviderThreads, an_unknown_answer_is_not_continued) {
  Threads threads;
  threads.keep("msg_1", ask_of(R"({"model": "m", "messages": [{"role": "user", "content": "go"}]})"));
  Ask ask = ask_of(follow("msg_1", kResult));
  EXPECT_FALSE(threads.complete(ask)) << "not a thread";
  EXPECT_FALSE(read_ask(Protocol::messages, "", R"({"model": "m", "thread": {"type": "continue"}, "messages": []})"));
  EXPECT_FALSE(read_ask(Protocol::messages, "", R"({"model": "m", "thread": {"type": "fork"}, "messages": [{}]})"));
}

TEST(ProviderThreads, the_oldest_is_dropped_when_there_are_too_many) {
  Threads threads;
  const Ask begin = ask_of(kBegin);
  for (std::size_t i = 0; i <= Threads::kAnswersMax; ++i) threads.keep("msg_" + std::to_string(i), begin);
  Ask oldest = ask_of(follow("msg_0", kResult));
  EXPECT_FALSE(threads.complete(oldest));
  Ask next = ask_of(follow("msg_1", kResult));
  EXPECT_TRUE(threads.complete(next));
}

}  // namespace
}  // namespace stint::provider
