#include "domain/trace.hpp"

#include <gtest/gtest.h>

namespace stint::domain {
namespace {

constexpr std::string_view kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(Trace, is_parsed_from_a_valid_header) {
  EXPECT_EQ(trace_of(kParent), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(trace_of("cc" + std::string(kParent.substr(2)) + "-more"), "0af7651916cd43dd8448eb211c80319c");
}

TEST(Trace, is_not_parsed_from_a_malformed_header) {
  const std::string good(kParent);
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", "ff" + good.substr(2),
        "00-" + std::string(32, '0') + good.substr(35), good.substr(0, 36) + std::string(16, '0') + good.substr(52),
        "00-0AF7651916CD43DD8448EB211C80319C" + good.substr(35), good.substr(0, 35) + "_" + good.substr(36)}) {
    EXPECT_EQ(trace_of(bad), std::nullopt) << bad;
  }
}

TEST(Trace, is_passed_on_in_the_header_of_an_attempt) {
  const System system{.wall_now = {}, .random = [] { return std::uint64_t{0}; }};
  const std::string trace = new_trace_id(system);
  EXPECT_EQ(trace_of(traceparent(trace, "run:1")), trace);
  EXPECT_NE(traceparent(trace, "run:1"), traceparent(trace, "run:2"));
  EXPECT_EQ(traceparent(trace, "run:1"), traceparent(trace, "run:1"));
}

}  // namespace
}  // namespace stint::domain
