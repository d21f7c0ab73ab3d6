/// A simulated process.
#pragma once

#include "world.hpp"

namespace stint::simulation {

struct Process {
  Process(World& place, std::size_t id, std::size_t at);
  ~Process();

  World& world;
  const std::size_t number, host;
  const domain::System system;  // its wall clock is wrong
  Line line;
  std::map<std::string, std::shared_ptr<Permit>> assigned;  // by mark
  std::unique_ptr<ShakyStore> store;
  std::unique_ptr<domain::Driver> driver;
  std::unique_ptr<domain::Permits> permits;
  std::unique_ptr<pool::RunCodec> run_codec;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<RootScope> scope;
  bool draining = false;
  TimePoint troubled_at = TimePoint::min();  // when it last lost or regained its connection to the store
  std::uint64_t frozen_times = 0;
};

/// A codec that keeps what it writes in the memory of the world.
[[nodiscard]] std::unique_ptr<pool::RunCodec> make_run_codec(World& world);

}  // namespace stint::simulation
