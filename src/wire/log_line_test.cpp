#include "wire/log_line.hpp"

#include <gtest/gtest.h>

namespace stint::wire {
namespace {

using domain::LogLevel;

const std::vector<domain::LogField> kFields = {{"run", "abcdefghijkl"},
                                               domain::LogField::number("attempt", "2"),
                                               {"session", ""},
                                               {"why", "a \"word\"\n\033[31mred"}};
const LogLine kLine{WallTime(std::chrono::milliseconds(1'700'000'000'007)), LogLevel::warning, "run failed", kFields};

TEST(LogLine, json_has_every_field) {
  EXPECT_EQ(to_json(kLine),
            R"({"time":"2023-11-14T22:13:20.007Z","level":"warning","event":"run failed","run":"abcdefghijkl",)"
            R"("attempt":2,"why":"a \"word\"\n\u001b[31mred"})");
}

TEST(LogLine, text_has_one_line_without_control_characters) {
  EXPECT_EQ(to_text(kLine),
            "2023-11-14T22:13:20.007Z warning run failed run=abcdefghijkl attempt=2 "
            R"(why="a \"word\"\n\u001b[31mred")");
}

}  // namespace
}  // namespace stint::wire
