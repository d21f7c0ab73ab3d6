/// How a command reaches the fleet: through a daemon if there is one, else by opening the store itself.
///
/// A daemon is named by `STINT_URL`, or by the file that each keeps beside the store of its repository while it lives.
/// Declare a connection before the scope that uses it. Own thread only.
#pragma once

#include "domain/system.hpp"
#include "driver/survivors.hpp"
#include "fleet/daemon_location.hpp"
#include "fleet/fleet.hpp"
#include "fleet/store_location.hpp"
#include "limit/host_place.hpp"
#include "project/snapshot.hpp"
#include "stint/offload.hpp"
#include "wire/run_codec.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stint::fleet {

struct ConnectionNeeds {
  bool agents = false;       ///< the project's agents, where no daemon knows them
  bool makes_store = false;  ///< a store that does not exist yet is made; else it counts as empty
};

class Connection {
 public:
  /// `on_outage` is called with a text for people when the daemon stops answering, and when it answers again.
  Connection(Reactor& reactor, const domain::System& system, project::Location location,
             std::function<void(const std::string&)> on_outage);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Reads files: before the reactor runs.
  Result<> blocking_prepare(const ConnectionNeeds& needs);
  Task<Result<>> open();

  // After open().
  [[nodiscard]] Fleet& fleet() noexcept { return *fleet_; }
  [[nodiscard]] bool is_daemon() const noexcept { return daemon_.has_value(); }
  /// The daemon's address, or the store, for people.
  [[nodiscard]] std::string where() const;
  /// The checkout that the daemon serves, if that is another than ours.
  [[nodiscard]] std::string elsewhere() const { return daemon_ ? daemon_->elsewhere : std::string(); }
  /// Whether a node takes submitted runs now. A node of `stint run` carries its own run alone.
  Task<Result<bool>> is_carried();
  /// Where no daemon prunes, a command that writes does: a bounded number of runs, at most once in a while over all
  /// commands. Ignores failures: the next command tries again.
  Task<> prune_if_due();

 private:
  Task<Result<std::vector<LimitView>>> list_host_limits();

  Reactor& reactor_;
  BlockingPool files_{"files", 1};
  const domain::System& system_;
  const project::Location location_;
  std::function<void(const std::string&)> on_outage_;
  std::optional<DaemonLocation> daemon_;
  // Without a daemon.
  StoreLocation place_;
  bool missing_ = false, writes_ = false;
  limit::HostPlace host_;
  std::shared_ptr<const project::Snapshot> snapshot_;  // as it is read; no other owner
  const project::AgentRegistry none_;
  wire::RunCodec run_codec_;
  driver::HostSurvivors survivors_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Fleet> fleet_;
};

}  // namespace stint::fleet
