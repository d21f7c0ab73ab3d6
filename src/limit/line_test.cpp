// The line of tickets.
#include "limit/line.hpp"

#include "os/process.hpp"
#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace stint::limit {
namespace {

class LineTest : public testing::Test {
 protected:
  LineTest() {
    limit_.name = "x";
    limit_.directory = folder_.path();
  }
  Line open() { return Line::open(limit_).value(); }
  Line joined(const std::string& label) {
    Line line = open();
    os::SlotRecord who;
    who.pid = ::getpid();
    who.label = label;
    EXPECT_TRUE(line.join(who));
    return line;
  }
  std::vector<std::string> labels(const Line& line) {
    std::vector<std::string> found;
    for (const os::SlotRecord& ticket : line.tickets(100)) found.push_back(ticket.label);
    return found;
  }
  void blow_up(off_t size) { ASSERT_EQ(::truncate(limit_.line_path().c_str(), size), 0); }

  os::TestFolder folder_;
  HostLimit limit_;
};

TEST_F(LineTest, first_is_who_came_first) {
  Line a = joined("a"), b = joined("b"), c = joined("c");
  EXPECT_TRUE(a.is_first(false));
  EXPECT_FALSE(b.is_first(false) || c.is_first(false));
  EXPECT_EQ(c.ahead(), 2U);
  b.leave();
  EXPECT_EQ(c.ahead(), 1U);
  a.leave();
  EXPECT_TRUE(c.is_first(false));
  EXPECT_EQ(c.ahead(), 0U);
}

TEST_F(LineTest, shows_the_living_tickets_in_order_to_anybody) {
  Line a = joined("a"), b = joined("b"), c = joined("c label with spaces");
  b.leave();
  const std::vector<std::string> wanted = {"a", "c label with spaces"};
  EXPECT_EQ(labels(open()), wanted);
  EXPECT_EQ(labels(a), wanted);
  EXPECT_EQ(labels(c), wanted);
  EXPECT_EQ(open().tickets(1).size(), 1U);
}

TEST_F(LineTest, one_leads_at_a_time) {
  const Line a = joined("a"), b = joined("b");
  EXPECT_TRUE(a.try_lead());
  EXPECT_FALSE(b.try_lead());
  a.stop_leading();
  EXPECT_TRUE(b.try_lead());
}

TEST_F(LineTest, only_who_is_stopped_is_passed_over) {
  Line a = joined("a"), b = joined("b");
  EXPECT_FALSE(b.is_first(true)) << "this process runs, and both tickets are its own";
}

TEST_F(LineTest, garbage_in_the_file_is_nobody) {
  folder_.write("x.line", std::string(100'000, '\xff'));
  Line a = joined("a");
  EXPECT_TRUE(a.is_first(false));
  EXPECT_EQ(labels(a), std::vector<std::string>{"a"});
}

TEST_F(LineTest, a_blown_up_file_costs_nothing_and_heals) {
  {
    Line a = joined("a");
    blow_up(off_t{1} << 38);  // 1.7 billion records
    Line b = joined("b");
    EXPECT_EQ(b.ahead(), 1U);
    EXPECT_FALSE(b.is_first(true));
    EXPECT_EQ(labels(open()), (std::vector<std::string>{"a", "b"}));
  }
  EXPECT_LT(std::filesystem::file_size(limit_.line_path()), 100'000U);
}

TEST_F(LineTest, a_blown_up_file_is_cut_by_who_comes_to_an_empty_line) {
  (void)open();
  blow_up(off_t{1} << 42);
  Line a = joined("a");
  EXPECT_LT(std::filesystem::file_size(limit_.line_path()), 100'000U);
  EXPECT_TRUE(a.is_first(false));
}

TEST_F(LineTest, a_file_beyond_all_bounds_is_an_error_while_somebody_waits) {
  Line a = joined("a");
  blow_up(off_t{1} << 42);
  Line b = open();
  EXPECT_FALSE(b.join({}));
  EXPECT_TRUE(a.is_first(false));
}

}  // namespace
}  // namespace stint::limit
