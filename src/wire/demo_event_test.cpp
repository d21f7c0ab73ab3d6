#include "wire/demo_event.hpp"

#include <gtest/gtest.h>

namespace stint::wire {
namespace {

using namespace std::chrono_literals;

TEST(DemoEvent, is_one_json_object_on_one_line) {
  DemoEvent event;
  event.at = 1234ms;
  event.kind = DemoEventKind::cancelled;
  event.who = "van";
  event.units = 3;
  event.took = 500ms;
  event.was_inside = true;
  event.capacity = 4;
  event.inside = 1;
  event.waiting = 2;
  EXPECT_EQ(to_json(event),
            R"({"event":"cancelled","at_ms":1234,"who":"van","units":3,"took_ms":500,"was_inside":true,)"
            R"("capacity":4,"inside":1,"waiting":2})");
}

TEST(DemoEvent, omits_fields_that_the_garage_does_not_have) {
  DemoEvent event;
  event.kind = DemoEventKind::closes;
  EXPECT_EQ(to_json(event), R"({"event":"closes","at_ms":0,"capacity":0,"inside":0,"waiting":0})");
}

TEST(DemoEvent, escapes_what_json_does_not_allow_in_a_string) {
  DemoEvent event;
  event.who = "a\"b\\c\n";
  EXPECT_NE(to_json(event).find(R"("who":"a\"b\\c\u000a")"), std::string::npos) << to_json(event);
}

}  // namespace
}  // namespace stint::wire
