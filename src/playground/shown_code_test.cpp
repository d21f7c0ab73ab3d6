#include "playground/shown_code.hpp"

#include <gtest/gtest.h>

namespace stint::playground {
namespace {

constexpr std::string_view kSource = R"(#include <nothing>
// [show]
take(door);  //@ waits granted door
take(lock);  // knows its owner //@ granted low: lock

}  //@ released
// [/show]
)";

Event event(EventKind kind, std::string task, std::string resource) {
  return {.kind = kind, .task = std::move(task), .resource = std::move(resource)};
}

TEST(ShownCode, is_the_part_between_the_tags_without_the_marks) {
  EXPECT_EQ(show(kSource).text, "take(door);\ntake(lock);  // knows its owner\n\n}\n");
}

TEST(ShownCode, a_mark_stands_for_kinds_tasks_and_resources) {
  const ShownCode shown = show(kSource);
  EXPECT_EQ(shown.line_of(event(EventKind::waits, "high1", "door")), 1U);
  EXPECT_EQ(shown.line_of(event(EventKind::granted, "low1", "lock")), 2U);
  EXPECT_EQ(shown.line_of(event(EventKind::granted, "high1", "lock")), std::nullopt);
  EXPECT_EQ(shown.line_of(event(EventKind::released, "", "anything")), 4U);
  EXPECT_EQ(shown.line_of(event(EventKind::closed, "low1", "door")), std::nullopt);
}

}  // namespace
}  // namespace stint::playground
