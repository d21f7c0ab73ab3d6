// What is written without a tree is what a tree would have written.
#include "wire/object_text.hpp"

#include "wire/values.hpp"

#include <gtest/gtest.h>

namespace stint::wire {
namespace {

TEST(ObjectText, writes_what_a_tree_writes) {
  for (const std::string& text : {std::string(), std::string("plain"), std::string("a \"b\" \\ \n \t \x01 \x7F"),
                                  std::string("\0", 1), std::string("ä€😀"), std::string("\xFF\xC3 broken \xE2\x82")}) {
    const std::string written = ObjectText().text("a", text).number("n", -7).json("j", "[1,{}]").end();
    const json::object tree{{"a", text_value(text)}, {"n", -7}, {"j", json::parse("[1,{}]")}};
    EXPECT_EQ(written, json::serialize(tree)) << text;
  }
}

TEST(ObjectText, leaves_out_what_is_empty) {
  EXPECT_EQ(ObjectText().end(), "{}");
  EXPECT_EQ(ObjectText().text_if_any("a", "").end(), "{}");
  EXPECT_EQ(ObjectText().text_if_any("a", "").text_if_any("b", "x").end(), R"({"b":"x"})");
}

}  // namespace
}  // namespace stint::wire
