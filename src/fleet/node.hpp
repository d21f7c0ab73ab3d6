/// A node of this process: an engine with its driver, permits and planner, and the fleet that commands and the API see.
/// The one place that assembles an engine: the daemon, the demo and `stint run` each have a Node. Own thread only.
#pragma once

#include "driver/driver_router.hpp"
#include "driver/llm_driver.hpp"
#include "engine/engine.hpp"
#include "fleet/local_fleet.hpp"
#include "limit/host_permits.hpp"
#include "model/caller.hpp"
#include "model/http_transport.hpp"
#include "model/upstreams.hpp"
#include "net/http_client.hpp"
#include "project/attempt_planner.hpp"
#include "stint/offload.hpp"
#include "wire/run_codec.hpp"

namespace stint::fleet {

class Node {
 public:
  struct Parts {
    Reactor& reactor;
    const domain::System& system;
    store::Store& store;
    project::CurrentSnapshot snapshot;  ///< the one in force; attempts keep the one they began with
    domain::Log* log = nullptr;
  };
  struct Options {
    engine::EngineOptions engine;
    LocalFleet::Options fleet;
    project::AttemptPlanner::Options planner;
    driver::ProcessDriver::Options driver;
  };
  Node(const Parts& parts, Options options);

  [[nodiscard]] engine::Engine& engine() noexcept { return engine_; }
  [[nodiscard]] LocalFleet& fleet() noexcept { return fleet_; }
  /// Back-pressure on the output of all attempts: true pauses it, false resumes it.
  void hold(bool held) {
    driver_.hold(held);
    llm_.hold(held);
  }

 private:
  wire::RunCodec run_codec_;
  limit::HostPermits permits_;
  BlockingPool files_;
  project::AttemptPlanner planner_;
  net::HttpClient http_;
  model::HttpTransport transport_;
  model::Caller caller_;
  model::Upstreams upstreams_;
  driver::DriverRouter driver_;
  driver::LlmDriver llm_;
  engine::Engine engine_;
  LocalFleet fleet_;
};

}  // namespace stint::fleet
