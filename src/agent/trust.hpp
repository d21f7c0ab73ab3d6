/// Trust: what a checkout would run on this machine runs only after a person said `stint trust` for it, once.
///
/// The rule: trust belongs to a repository at its place, for one user. It covers all its worktrees and what its files
/// come to say later (agents that change agent files are the very use of them), and it ends with `--revoke`, or when
/// another repository stands at that place. It is kept outside the checkout, where nothing in it can reach.
///
/// A record is a file of its own, made by rename and ended by unlink, so that two processes never lose each other's.
#pragma once

#include "agent/discovery.hpp"
#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "stint/error.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace stint::agent {

inline constexpr std::size_t kTrustRecordsMax = 10'000;

/// `state` is the user's folder, see `user_places`. Fails if the record can't be believed: then nothing may run,
/// either.
[[nodiscard]] Result<bool> blocking_is_trusted(const std::filesystem::path& state, const Project& project);
[[nodiscard]] Result<> blocking_trust(const std::filesystem::path& state, const Project& project);
/// Whether there was anything to revoke.
[[nodiscard]] Result<bool> blocking_revoke_trust(const std::filesystem::path& state, const Project& project);

struct TrustRecord {
  std::filesystem::path identity;  ///< of the project
  bool holds = false;              ///< false: gone, or another one stands there
};
[[nodiscard]] Result<std::vector<TrustRecord>> blocking_list_trust(const std::filesystem::path& state);

/// What of a project runs only with trust, each with the place that says so: commands of agents and tools, arguments
/// for CLIs (they can start servers, or lift every question), the gate, and where keys are sent.
struct TrustedThing {
  std::string what;
  std::string where;
};
[[nodiscard]] std::vector<TrustedThing> things_that_need_trust(const Catalogue& catalogue, const Settings& settings);
[[nodiscard]] std::vector<TrustedThing> things_that_need_trust(const domain::Agent& agent);

/// `Errc::denied`, naming the first of them and the way out.
[[nodiscard]] Error untrusted(const Project& project, const TrustedThing& thing);

}  // namespace stint::agent
