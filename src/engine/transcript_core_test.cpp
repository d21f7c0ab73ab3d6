#include "engine/transcript_core.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace stint::engine {
namespace {

using Kind = TranscriptItem::Kind;

class TranscriptTest : public ::testing::Test {
 protected:
  TranscriptFact& add(std::string cause, std::string note, std::optional<std::uint64_t> output_at) {
    TranscriptFact& fact = input_.facts.emplace_back();
    fact.event.seq = ++seq_;
    fact.event.fence = domain::Fence{1};
    fact.event.cause = std::move(cause);
    fact.note = std::move(note);
    fact.output_at = output_at;
    return fact;
  }
  void add_result(std::string name, std::string text, std::uint64_t output_at) {
    add("span", {}, output_at).span = {
        .kind = domain::SpanKind::tool, .name = std::move(name), .length = {}, .usage = {}, .text = std::move(text)};
  }
  void print(std::string_view text) {
    input_.output.head += text;
    input_.output.bytes += text.size();
  }
  static std::string text(const Transcript& page) {
    std::string out;
    for (const TranscriptItem& each : page.items) {
      out += fmt::format("[{}{}{}]", to_string(each.kind), each.text.empty() && each.bytes == 0 ? "" : " ",
                         each.kind == Kind::left_out ? std::to_string(each.bytes) : each.text);
    }
    return out;
  }

  TranscriptInput input_;
  std::int64_t seq_ = 0;
};

TEST_F(TranscriptTest, tools_stand_where_they_were_called) {
  print("I look.\nDone.\n");
  add("enqueued", "", {});
  add("claimed", "", {});
  add("tool", "Bash ls", 8);
  add_result("Bash", "a.txt", 8);
  add("succeeded", "", {});
  input_.ended = true;
  const Transcript page = make_transcript(input_, {});
  EXPECT_EQ(text(page), "[attempt][text I look.\n][tool Bash ls][tool_end a.txt][text Done.\n][ended succeeded]");
  EXPECT_EQ(page.next, (TranscriptPlace{5, 14}));
  EXPECT_FALSE(page.more);
}

TEST_F(TranscriptTest, a_note_waits_for_the_text_before_it) {
  print("I lo");
  add("claimed", "", {});
  add("tool", "Bash ls", 8);
  const Transcript first = make_transcript(input_, {});
  EXPECT_EQ(text(first), "[attempt][text I lo]");
  EXPECT_EQ(first.next, (TranscriptPlace{1, 4}));
  input_.facts.erase(input_.facts.begin());
  print("ok.\n");
  EXPECT_EQ(text(make_transcript(input_, first.next)), "[text ok.\n][tool Bash ls]");
  input_.output = {};
  input_.ended = true;
  EXPECT_EQ(text(make_transcript(input_, {})), "[tool Bash ls]") << "its text was lost";
}

TEST_F(TranscriptTest, says_how_many_bytes_are_not_kept) {
  input_.output = {.head = "begin", .tail = "end", .bytes = 1000};
  add("claimed", "", {});
  add("tool", "in the gap", 500);
  const Transcript page = make_transcript(input_, {});
  EXPECT_EQ(text(page), "[attempt][text begin][left_out 992][tool in the gap][text end]");
  EXPECT_EQ(page.bytes, 1000U);
}

TEST_F(TranscriptTest, pages_join_without_loss_or_repetition) {
  std::mt19937_64 random(7);
  std::string all;
  std::string expected;
  add("claimed", "", {});
  for (int i = 0; i < 40; ++i) {
    const std::string said(random() % 5000, 'x');
    all += said + "é\n";
    add("tool", std::to_string(i), all.size());
  }
  print(all);
  input_.ended = true;
  std::string text;
  std::vector<std::string> tools;
  const std::vector<TranscriptFact> facts = input_.facts;
  TranscriptPlace place;
  for (bool more = true; more;) {
    input_.facts.assign(facts.begin() + place.seq, facts.begin() + std::min<std::ptrdiff_t>(place.seq + 7, seq_));
    input_.complete = place.seq + 7 >= seq_;
    const Transcript page = make_transcript(input_, place);
    std::size_t bytes = 0;
    for (const TranscriptItem& item : page.items) {
      if (item.kind == Kind::text) {
        EXPECT_EQ(item.byte, text.size());
        text += item.text;
        bytes += item.text.size();
      }
      if (item.kind == Kind::tool) tools.push_back(item.text);
    }
    EXPECT_LE(bytes, Transcript::kTextMax);
    ASSERT_NE(page.next, place);
    place = page.next;
    more = page.more;
  }
  EXPECT_EQ(text, all);
  ASSERT_EQ(tools.size(), 40U);
  EXPECT_EQ(tools[39], "39");
}

TEST_F(TranscriptTest, a_place_is_read_as_it_was_written) {
  const TranscriptPlace place{.seq = 12, .byte = 3456};
  EXPECT_EQ(parse_transcript_place(to_string(place)), place);
  for (const char* const wrong : {"", ".", "1", "1.", ".1", "1.2.3", "-1.2", "1.-2", "a.b", "1.99999999999999999999"}) {
    EXPECT_EQ(parse_transcript_place(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace stint::engine
