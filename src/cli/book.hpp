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
  bool trusted = false;  ///< the checkout, when it was read
  HostRequests permits;
  std::map<std::string, std::uint32_t, std::less<>> cluster_limits;  ///< that the store counts
};
/// `cluster`: the store is shared between machines, and counts limits itself. `before`: agents of that reading whose
/// file is broken now stay as they were, and those whose file was deleted stay for what was accepted. Fails if a
/// setting is wrong.
[[nodiscard]] Result<std::shared_ptr<const Reading>> blocking_read_project(const Surroundings& around, bool cluster,
                                                                           const Reading* before = nullptr);
/// Whether somebody has said `stint trust` since, or has taken it back.
[[nodiscard]] bool blocking_trust_changed(const Surroundings& around, const Reading& reading);

}  // namespace stint::cli
