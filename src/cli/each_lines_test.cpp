#include "cli/each_lines.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

std::vector<std::string> texts(std::vector<LineCutter::CutLine> lines) {
  std::vector<std::string> out;
  for (LineCutter::CutLine& line : lines) out.push_back(std::to_string(line.number) + ":" + line.text);
  return out;
}

TEST(LineCutter, pieces_become_lines_with_their_numbers) {
  LineCutter cutter;
  cutter.add("on");
  EXPECT_TRUE(cutter.empty());
  cutter.add("e\r\n\n  \ntwo\nthr");
  EXPECT_EQ(texts(cutter.take(9)), (std::vector<std::string>{"1:one", "4:two"}));
  cutter.add("ee");
  cutter.finish();
  cutter.finish();
  EXPECT_EQ(texts(cutter.take(9)), std::vector<std::string>{"5:three"});
}

TEST(LineCutter, a_batch_is_bounded) {
  LineCutter cutter;
  cutter.add("a\nb\nc\n");
  EXPECT_EQ(cutter.take(2).size(), 2U);
  EXPECT_EQ(texts(cutter.take(2)), std::vector<std::string>{"3:c"});
  EXPECT_TRUE(cutter.empty());
}

TEST(LineCutter, marks_a_line_that_is_too_long_and_keeps_the_next) {
  LineCutter cutter;
  cutter.add(std::string(kEachLineMax, 'x'));
  cutter.add("y");
  cutter.add("z\nnext\n");
  const auto lines = cutter.take(9);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].too_long);
  EXPECT_EQ(lines[0].text, "");
  EXPECT_EQ(lines[1].text, "next");
  EXPECT_FALSE(read_submission(lines[0], {}));
}

engine::Submission like(std::vector<std::string> words = {}) {
  engine::Submission submission;
  submission.agent = "review";
  submission.words = std::move(words);
  return submission;
}

TEST(EachLine, text_is_the_first_value_also_if_it_looks_like_a_named_one) {
  const auto submission = read_submission({3, "a=b c", false}, like({"focus=x"}));
  ASSERT_TRUE(submission);
  EXPECT_EQ(submission->words, (std::vector<std::string>{"focus=x", "--", "a=b c"}));
}

TEST(EachLine, an_object_has_arguments_and_overrides_shared_ones) {
  const auto submission = read_submission({1, R"( {"pr": 42, "tags": ["a", "b"]})", false}, like({"pr=1", "focus=x"}));
  ASSERT_TRUE(submission) << submission.error().describe();
  EXPECT_EQ(submission->args, (domain::ArgumentValues{{"pr", {"42"}}, {"tags", {"a", "b"}}, {"focus", {"x"}}}));
  EXPECT_TRUE(submission->words.empty());
}

TEST(EachLine, refuses_invalid_lines) {
  EXPECT_FALSE(read_submission({1, "{\"pr\": ", false}, like()));
  EXPECT_FALSE(read_submission({1, R"({"pr": {"deep": 1}})", false}, like()));
  EXPECT_FALSE(read_submission({1, R"({"pr": 1})", false}, like({"without-a-name"})));
  EXPECT_FALSE(read_submission({1, "\xff", false}, like()));
}

TEST(EachLine, without_an_agent_a_line_is_a_prompt_and_keys_are_numbered_by_line) {
  engine::Submission shared;
  shared.key = "night";
  const auto submission = read_submission({7, "{fix} the tests", false}, shared);
  ASSERT_TRUE(submission);
  EXPECT_EQ(submission->prompt, "{fix} the tests");
  EXPECT_EQ(submission->key, "night:7");
}

}  // namespace
}  // namespace stint::cli
