// The wait line of a limit.
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

TEST_F(LineTest, the_oldest_ticket_is_first) {
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

TEST_F(LineTest, lists_the_living_tickets_in_order_to_any_process) {
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

TEST_F(LineTest, only_stopped_processes_are_passed_over) {
  Line a = joined("a"), b = joined("b");
  EXPECT_FALSE(b.is_first(true)) << "this process is not stopped, and both tickets are its own";
}

TEST_F(LineTest, garbage_in_the_file_is_not_a_ticket) {
  folder_.write("x.line", std::string(100'000, '\xff'));
  Line a = joined("a");
  EXPECT_TRUE(a.is_first(false));
  EXPECT_EQ(labels(a), std::vector<std::string>{"a"});
}

TEST_F(LineTest, an_inflated_file_is_read_quickly_and_compacted) {
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

TEST_F(LineTest, an_inflated_file_is_cut_when_the_line_is_empty) {
  (void)open();
  blow_up(off_t{1} << 42);
  Line a = joined("a");
  EXPECT_LT(std::filesystem::file_size(limit_.line_path()), 100'000U);
  EXPECT_TRUE(a.is_first(false));
}

TEST_F(LineTest, a_file_beyond_its_bound_is_an_error_while_a_process_waits) {
  Line a = joined("a");
  blow_up(off_t{1} << 42);
  Line b = open();
  EXPECT_FALSE(b.join({}));
  EXPECT_TRUE(a.is_first(false));
}

}  // namespace
}  // namespace stint::limit
