/// A dashboard in the simulated world: at random moments it reads the snapshot of the fleet, brings its last one up to
/// date with the feed, and expects both to agree.
#pragma once

#include "store/snapshot.hpp"

#include <map>
#include <string>

namespace stint::simulation {

class World;

class FleetReader {
 public:
  explicit FleetReader(World& world) : world_(world) {}
  /// Not from within a task.
  void look();

 private:
  void take(const store::Event& event);
  void compare(const store::Snapshot& now);

  World& world_;
  std::map<domain::RunState, std::uint64_t> counts_;
  std::map<std::string, domain::RunState> states_;
  std::map<std::string, std::int64_t> seqs_;
  std::string cursor_;  // empty: nothing was read yet
};

}  // namespace stint::simulation
