#include "wire/doctor.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stint::wire {
namespace {

TEST(DoctorJson, names_and_order_are_a_contract) {
  const std::vector<Check> checks = {{"git.program", "git", CheckStatus::ok, "git 2.39", ""},
                                     {"limits.filesystem", "limits", CheckStatus::warn, "nfs", "move it"}};
  EXPECT_EQ(doctor_to_json(checks),
            R"({"schema":1,"status":"warn","checks":[)"
            R"({"id":"git.program","category":"git","status":"ok","summary":"git 2.39","remedy":""},)"
            R"({"id":"limits.filesystem","category":"limits","status":"warn","summary":"nfs","remedy":"move it"}]})");
}

TEST(DoctorJson, the_worst_check_decides) {
  using enum CheckStatus;
  EXPECT_EQ(worst({}), ok);
  const std::vector<Check> checks = {{"a", "a", warn, "", ""}, {"b", "b", fail, "", ""}, {"c", "c", ok, "", ""}};
  EXPECT_EQ(worst(checks), fail);
}

TEST(DoctorJson, invalid_utf8_in_a_name_stays_readable) {
  const std::vector<Check> checks = {{"a", "a", CheckStatus::ok, "/tmp/\xff", ""}};
  EXPECT_NE(doctor_to_json(checks).find("/tmp/\xEF\xBF\xBD"), std::string::npos);
}

}  // namespace
}  // namespace stint::wire
