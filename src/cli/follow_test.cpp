#include "cli/follow.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

std::string taken(OutputReader& reader, const store::Output& output) {
  std::string text;
  for (const OutputReader::Piece& piece : reader.take(output)) {
    if (piece.left_out > 0) text += "<" + std::to_string(piece.left_out) + ">";
    text += piece.text;
  }
  return text;
}

TEST(OutputReader, gives_what_is_new) {
  OutputReader reader;
  EXPECT_EQ(taken(reader, {}), "");
  EXPECT_EQ(taken(reader, {"hello", "", 5}), "hello");
  EXPECT_EQ(taken(reader, {"hello", "", 5}), "");
  EXPECT_EQ(taken(reader, {"hello wor", "ld", 11}), " world");
  EXPECT_EQ(taken(reader, {"hello wor", "ld!", 12}), "!");
}

TEST(OutputReader, says_how_much_is_missing) {
  OutputReader whole;
  EXPECT_EQ(taken(whole, {"head", "tail", 108}), "head<100>tail");
  EXPECT_EQ(taken(whole, {"head", "tail", 108}), "");
  EXPECT_EQ(taken(whole, {"head", "more", 120}), "<8>more");
  EXPECT_EQ(taken(whole, {"head", "reXY", 122}), "XY");
}

}  // namespace
}  // namespace stint::cli
