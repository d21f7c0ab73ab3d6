#include "fleet/node.hpp"

#include "stint/asio.hpp"

#include <utility>

namespace stint::fleet {

namespace {

constexpr std::uint32_t kPlansAtOnce = 2;  // they wait for the disk; more would not be sooner

engine::EngineOptions with_call_limits(engine::EngineOptions options, const project::Snapshot& snapshot) {
  options.call_limits = snapshot.process_limits;
  return options;
}

}  // namespace

Node::Node(const Parts& parts, Options options)
    : permits_(parts.reactor, parts.system, parts.snapshot),
      files_("attempts", kPlansAtOnce),
      planner_(files_, parts.snapshot, std::move(options.planner)),
      driver_(parts.reactor, std::move(options.driver)),
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
             std::move(options.fleet)) {}

}  // namespace stint::fleet
