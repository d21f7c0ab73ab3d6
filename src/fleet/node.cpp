#include "fleet/node.hpp"

#include "fleet/model_lookup.hpp"
#include "stint/asio.hpp"

#include <utility>

namespace stint::fleet {

namespace {

constexpr std::uint32_t kPlansAtOnce = 2;  // they wait for the disk; more would not be sooner

engine::EngineOptions with_call_limits(engine::EngineOptions options, const project::Snapshot& snapshot) {
  options.call_limits = snapshot.process_limits;
  return options;
}

project::AttemptPlanner::Options with_models(project::AttemptPlanner::Options options) {
  options.blocking_resolve_model = blocking_resolve_model;
  return options;
}

}  // namespace

Node::Node(const Parts& parts, Options options)
    : permits_(parts.reactor, parts.system, parts.snapshot),
      files_("attempts", kPlansAtOnce),
      planner_(files_, parts.snapshot, with_models(std::move(options.planner))),
      http_(parts.reactor),
      transport_(http_),
      caller_(transport_, parts.system),
      upstreams_(parts.reactor, parts.system),
      driver_(parts.reactor, options.driver),
      llm_({.executor = parts.reactor,
            .caller = caller_,
            .upstreams = upstreams_,
            .make_tools = driver::make_tool_runners(driver_.wardens(), http_),
            .survivors = &driver_.survivors()},
           {.mask = std::move(options.driver.mask), .on_output = std::move(options.driver.on_output)}),
      engine_({parts.reactor, parts.store, driver_, permits_, run_codec_, parts.system, parts.log, &driver_.survivors(),
               &planner_},
              with_call_limits(std::move(options.engine), *parts.snapshot()), parts.snapshot()->registry),
      fleet_({.executor = parts.reactor,
              .store = parts.store,
              .run_codec = run_codec_,
              .system = parts.system,
              .registry = [this]() -> const project::AgentRegistry& { return engine_.registry(); },
              .engine = &engine_,
              .survivors = &driver_.survivors()},
             std::move(options.fleet)) {
  driver_.add(driver::LlmDriver::kName, llm_);
}

}  // namespace stint::fleet
