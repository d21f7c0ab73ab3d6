#include "fleet/follow.hpp"

#include "stint/testing.hpp"

#include <gtest/gtest.h>

namespace stint::fleet {
namespace {

std::string taken(OutputReader& reader, const store::Output& output) {
  std::string text;
  for (const OutputReader::Piece& piece : reader.take(output)) {
    if (piece.left_out > 0) text += "<" + std::to_string(piece.left_out) + ">";
    text += piece.text;
  }
  return text;
}

TEST(OutputReader, returns_only_new_output) {
  OutputReader reader;
  EXPECT_EQ(taken(reader, {}), "");
  EXPECT_EQ(taken(reader, {"hello", "", 5}), "hello");
  EXPECT_EQ(taken(reader, {"hello", "", 5}), "");
  EXPECT_EQ(taken(reader, {"hello wor", "ld", 11}), " world");
  EXPECT_EQ(taken(reader, {"hello wor", "ld!", 12}), "!");
}

TEST(OutputReader, counts_missing_bytes) {
  OutputReader whole;
  EXPECT_EQ(taken(whole, {"head", "tail", 108}), "head<100>tail");
  EXPECT_EQ(taken(whole, {"head", "tail", 108}), "");
  EXPECT_EQ(taken(whole, {"head", "more", 120}), "<8>more");
  EXPECT_EQ(taken(whole, {"head", "reXY", 122}), "XY");
}

TEST(OutputReader, skips_output_that_was_seen_elsewhere) {
  OutputReader reader;
  reader.saw(7);
  EXPECT_EQ(taken(reader, {"hello", "", 5}), "");
  EXPECT_EQ(taken(reader, {"hello w", "", 7}), "");
  EXPECT_EQ(taken(reader, {"hello wor", "ld", 11}), "orld");
}

TEST(Outage, is_tolerated_for_a_while_and_reported_once) {
  Simulator clock;
  std::vector<std::string> said;
  Outage outage(clock, [&](const std::string& text) { said.push_back(text); });
  const Error away(Errc::unavailable, "it does not answer");
  outage.end();
  EXPECT_TRUE(said.empty()) << "no outage began";
  EXPECT_TRUE(outage.tolerate(away));
  clock.advance(Outage::kToleratedMax - std::chrono::seconds(1));
  EXPECT_TRUE(outage.tolerate(Error(Errc::timed_out, "late")));
  EXPECT_TRUE(outage.tolerate(Error(Errc::full, "retry later")));
  EXPECT_EQ(said, std::vector<std::string>{"it does not answer; retrying"});
  outage.end();
  EXPECT_EQ(said.back(), "connected again");
  clock.advance(Outage::kToleratedMax);
  EXPECT_TRUE(outage.tolerate(away)) << "another one";
  clock.advance(Outage::kToleratedMax);
  EXPECT_FALSE(outage.tolerate(away));
  EXPECT_EQ(said.size(), 3U);
}

TEST(Outage, an_answer_is_not_an_outage) {
  Simulator clock;
  Outage outage(clock, [](const std::string& text) { ADD_FAILURE() << text; });
  for (const Errc code : {Errc::invalid, Errc::denied, Errc::failed}) {
    EXPECT_FALSE(outage.tolerate(Error(code, "no")));
  }
}

}  // namespace
}  // namespace stint::fleet
