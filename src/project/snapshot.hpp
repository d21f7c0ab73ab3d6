/// The state of a checkout at one moment, as one immutable value: its agents with defaults filled in, its settings,
/// whether it is trusted, which limits its agents need and what counts them, and which agents must not run and why.
///
/// A run keeps the snapshot under which it began; a reload reads the next one. Nothing in it changes: share it freely
/// between threads.
#pragma once

#include "agent/discovery.hpp"
#include "project/agent_registry.hpp"
#include "project/checkout.hpp"
#include "project/limit_settings.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace stint::project {

/// A limit of this host that each run of an agent takes.
struct HostLimitUse {
  std::string name;
  std::uint32_t weight = 1;
  std::uint32_t capacity = 1;  ///< as configured; a resize overrides it

  friend bool operator==(const HostLimitUse&, const HostLimitUse&) = default;
};
using HostLimitUses = std::map<std::string, std::vector<HostLimitUse>, std::less<>>;  ///< by agent

struct Snapshot {
  Checkout checkout;
  LimitDirectories limit_directories;
  agent::Catalogue catalogue;
  AgentRegistry registry;
  bool trusted = false;         ///< the checkout was trusted when it was read
  std::filesystem::path state;  ///< the user's state folder, with the list of trusted checkouts
  HostLimitUses host_limits;
  std::map<std::string, std::uint32_t> cluster_limits;  ///< counted by the store
  std::map<std::string, std::uint32_t> process_limits;  ///< of single calls within attempts, counted by each node
  std::vector<HostLimitUse> unusable;  ///< limits whose files can't be written; their agents are refused
};

/// Returns the current snapshot.
using CurrentSnapshot = std::function<std::shared_ptr<const Snapshot>()>;

/// A host limit, read from its files.
struct HostLimitState {
  std::uint32_t capacity = 1;
  std::optional<Error> unusable;  ///< why no permit can be taken
};

/// What a model's name means, for a driver that calls models itself.
struct FoundModel {
  std::string account;  ///< the limit that a refusal pauses; empty: none
  Price price;
};

/// Callbacks into the layers above.
struct SnapshotPorts {
  /// None: the name means no model, or several. Null: as if it were none.
  std::function<std::optional<FoundModel>(const agent::Settings&, const std::string& model)> find_model;
  /// Fails if the driver can't enforce the tool rules of the agent file.
  std::function<Result<>(const domain::DriverDescriptor&, const domain::Agent&)> check_tools;
  /// Fails if there can be no limit of that name and capacity.
  std::function<Result<HostLimitState>(const LimitDirectories&, const HostLimitUse&)> blocking_look_at_limit;
};

struct SnapshotOptions {
  bool cluster = false;  ///< the store is shared between machines, and counts limits itself
  /// Agents of that snapshot whose file is broken now stay as they were, and those whose file was deleted stay for runs
  /// that were accepted.
  const Snapshot* before = nullptr;
};
/// Fails if a setting is wrong.
[[nodiscard]] Result<std::shared_ptr<const Snapshot>> blocking_read_snapshot(const Location& location,
                                                                             const SnapshotPorts& ports,
                                                                             SnapshotOptions options = {});
/// Whether `stint trust` was granted or revoked since the snapshot was read.
[[nodiscard]] bool blocking_trust_changed(const Location& location, const Snapshot& snapshot);

/// The driver of a run: the one chosen for it, else the agent's own.
[[nodiscard]] const domain::DriverDescriptor& driver_of(const domain::Agent& agent, std::string_view chosen);
/// The store entries of all agents and their account variants.
[[nodiscard]] std::vector<std::string> names_in_store(const Snapshot& snapshot);
/// What is wrong with the settings and with the file of this agent, in the order of their files. A command that uses
/// the agent shows it: an unknown key is otherwise silent.
[[nodiscard]] std::vector<agent::Problem> problems_of(const std::string& agent, const agent::Catalogue& catalogue,
                                                      const std::vector<agent::Problem>& settings);

}  // namespace stint::project
