/// The agents of a project as an engine takes them: what the store counts, what the host counts, what may not run and
/// why.
#pragma once

#include "agent/discovery.hpp"
#include "cli/host_homes.hpp"
#include "engine/book.hpp"
#include "limit/host_limits.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace stint::cli {

/// What the runs of an agent need of this host, by agent.
using HostRequests = std::map<std::string, std::vector<limit::HostRequest>, std::less<>>;

/// One reading of the project. Shared by who began a run under it and who reads the next.
struct Reading {
  HostPlace place;
  agent::Catalogue catalogue;
  engine::Book book;
  bool trusted = false;         ///< the checkout, when it was read
  std::filesystem::path state;  ///< the user's folder, with what is trusted
  HostRequests permits;
  std::map<std::string, std::uint32_t> cluster_limits;  ///< that the store counts
  std::vector<limit::HostLimit> unusable;  ///< limits whose files can't be written; their agents are refused
};
/// What does the agent's work: what was chosen for one run, else the agent's own.
[[nodiscard]] domain::DriverKind driver_of(const domain::Agent& agent, std::string_view chosen);
[[nodiscard]] std::vector<std::string> agent_names(const Reading& reading);
/// What is wrong with the settings and with the file of this agent, in the order of their files. A command that uses
/// the agent shows it: an unknown key is otherwise silent.
[[nodiscard]] std::vector<agent::Problem> problems_of(const std::string& agent, const agent::Catalogue& catalogue,
                                                      const std::vector<agent::Problem>& settings);
/// `cluster`: the store is shared between machines, and counts limits itself. `before`: agents of that reading whose
/// file is broken now stay as they were, and those whose file was deleted stay for what was accepted. Fails if a
/// setting is wrong.
[[nodiscard]] Result<std::shared_ptr<const Reading>> blocking_read_project(const Surroundings& around, bool cluster,
                                                                           const Reading* before = nullptr);
/// Whether a limit that could not be used can be used now.
[[nodiscard]] bool blocking_limits_mended(const Reading& reading);
/// Whether somebody has said `stint trust` since, or has taken it back.
[[nodiscard]] bool blocking_trust_changed(const Surroundings& around, const Reading& reading);

}  // namespace stint::cli
