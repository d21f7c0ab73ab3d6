#include "cli/exit_status.hpp"

#include "fleet/remote_fleet.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

TEST(RemoteError, a_refusal_has_the_exit_status_of_what_it_means) {
  EXPECT_EQ(fleet::remote_error(503, "full", 3s), Errc::full);
  EXPECT_EQ(exit_status(fleet::remote_error(503, "full", 3s)), kExitRefused);
  EXPECT_EQ(fleet::remote_error(503, "full", 3s).retry_after(), Duration(3s));
  EXPECT_EQ(fleet::remote_error(503, "full", {}).retry_after(), Duration(1s));
  EXPECT_EQ(fleet::remote_error(422, "'pr' is missing", {}), Errc::invalid);
  EXPECT_EQ(fleet::remote_error(422, "'pr' is missing", {}).describe(), "'pr' is missing");
  EXPECT_EQ(fleet::remote_error(404, "no", {}), Errc::invalid);
  EXPECT_EQ(fleet::remote_error(404, "no x", {}, "/v1/agents").describe(), "no x. `stint agents` lists them");
  EXPECT_EQ(fleet::remote_error(404, "no x", {}, "/v1/limits").describe(), "no x. `stint limits` lists them");
  EXPECT_EQ(fleet::remote_error(404, "no x", {}, "/v2/other").describe(), "no x");
  EXPECT_EQ(fleet::remote_error(409, "not in doubt", {}), Errc::conflict);
  EXPECT_EQ(exit_status(fleet::remote_error(409, "not in doubt", {})), kExitFailed);
  EXPECT_EQ(fleet::remote_error(403, "no", {}), Errc::denied);
  EXPECT_EQ(fleet::remote_error(500, "", {}).describe(), "the daemon answered HTTP 500");
  EXPECT_NE(fleet::remote_error(401, "?", {}).describe().find("STINT_TOKEN"), std::string::npos);
}

TEST(ExitStatus, of_a_run_follows_from_its_state) {
  using domain::RunState;
  const auto of = [](RunState state) {
    store::Run run;
    run.state = state;
    return exit_status(run);
  };
  EXPECT_EQ(of(RunState::succeeded), 0);
  EXPECT_EQ(of(RunState::failed), 1);
  EXPECT_EQ(of(RunState::expired), 4);
  EXPECT_EQ(of(RunState::cancelled), 5);
  EXPECT_EQ(of(RunState::in_doubt), 6);
  EXPECT_EQ(of(RunState::parked), 6);
  EXPECT_EQ(exit_status(Error(Errc::closed)), 3);
  EXPECT_EQ(exit_status(Error(Errc::unavailable)), 1);
}

}  // namespace
}  // namespace stint::cli
