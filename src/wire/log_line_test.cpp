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

TEST(LogLine, for_programs) {
  EXPECT_EQ(to_json(kLine),
            R"({"time":"2023-11-14T22:13:20.007Z","level":"warning","event":"run failed","run":"abcdefghijkl",)"
            R"("attempt":2,"why":"a \"word\"\n\u001b[31mred"})");
}

TEST(LogLine, for_people_in_one_line_that_a_terminal_does_not_obey) {
  EXPECT_EQ(to_text(kLine),
            "2023-11-14T22:13:20.007Z warning run failed run=abcdefghijkl attempt=2 "
            R"(why="a \"word\"\n\u001b[31mred")");
}

}  // namespace
}  // namespace stint::wire
