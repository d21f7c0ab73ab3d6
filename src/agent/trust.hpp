/// Trust: what a checkout would run on this machine runs only after a person said `stint trust` for it, once.
///
/// The rule: trust belongs to a repository at its place, for one user: path, inode and birth time of its folder. It
/// covers all its worktrees and what its files come to say later (agents that change agent files are the very use of
/// them), and it ends with `--revoke`, or when another repository stands at that place. It is kept outside the
/// checkout, where nothing in it can reach.
///
/// A record is a file of its own, made by rename and ended by unlink, so that two processes never lose each other's.
#pragma once

#include "agent/discovery.hpp"
#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "stint/error.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stint::agent {

inline constexpr std::size_t kTrustRecordsMax = 10'000;
/// Above this, records of folders that are gone are removed: scripts may use a new folder for each run.
inline constexpr std::size_t kFolderRecordsMax = 1'000;

/// `Errc::denied` if a checkout, or a folder with settings, belongs to another user, as git refuses it: that user's
/// files would decide what runs here. `stint trust` is a person's word that this is meant.
[[nodiscard]] Result<> blocking_check_owner(const std::filesystem::path& state, const Project& project,
                                            const EnvironmentVariables& environment);

/// Whether a file belongs to this user; for root also to the one who became root by sudo. False if it is not there.
[[nodiscard]] bool blocking_is_own(const std::filesystem::path& path, const EnvironmentVariables& environment);

/// What a store says is data: a program that a run names is started only if a person named it on a command line of this
/// user (`stint run --program`).
[[nodiscard]] Result<> blocking_allow_program(const std::filesystem::path& state, const std::string& program);
[[nodiscard]] bool blocking_is_program_allowed(const std::filesystem::path& state, const std::string& program);

/// The same of the folder in which a run works: outside a repository all folders share a store, and a run whose process
/// was lost goes on in its own folder. `folder` is a real path; one that was deleted and made anew is another.
[[nodiscard]] Result<> blocking_allow_folder(const std::filesystem::path& state, const std::filesystem::path& folder);
[[nodiscard]] Result<bool> blocking_is_folder_allowed(const std::filesystem::path& state,
                                                      const std::filesystem::path& folder);

/// Files in a repository's folder that a daemon believes: the store, whose runs it begins, and its token. An unpacked
/// folder may bring its own, so it is noted that Stint is about to make one; before it is made, so that a second
/// process never sees a file without its note.
enum class OwnFile : std::uint8_t { store, token };
[[nodiscard]] Result<> blocking_note_own(const std::filesystem::path& state, OwnFile which,
                                         const std::filesystem::path& common_dir);
[[nodiscard]] bool blocking_is_own(const std::filesystem::path& state, OwnFile which,
                                   const std::filesystem::path& common_dir);

/// `Errc::denied` if the places where Stint keeps its files in a checkout are symbolic links, and it is not trusted:
/// they would be written elsewhere.
[[nodiscard]] Result<> blocking_check_links(const std::filesystem::path& state, const Project& project);

/// Where the homes of agents with `home: slot` are: below the user's state, so that a checkout can't bring them filled.
/// A repository that is made anew has others.
[[nodiscard]] Result<std::filesystem::path> blocking_find_homes_of_agents(const std::filesystem::path& state,
                                                                          const Project& project);

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
/// for CLIs (they can start servers, or lift every question), permission to do everything, CLIs that read the
/// checkout's own settings, the gate, and where data and keys are sent.
struct TrustedThing {
  std::string what;
  std::string where;
};
[[nodiscard]] std::vector<TrustedThing> things_that_need_trust(const Catalogue& catalogue, const Settings& settings);
/// `driver`: what does the agent's work, which need not be what its file says.
[[nodiscard]] std::vector<TrustedThing> things_that_need_trust(const domain::Agent& agent,
                                                               const domain::DriverDescriptor& driver);

/// Files of the checkout that agent CLIs read by themselves: they name hooks, MCP servers, further settings. Of one
/// CLI, or of all (null).
[[nodiscard]] std::vector<TrustedThing> blocking_find_cli_settings(const std::filesystem::path& root,
                                                                   const domain::DriverDescriptor* driver = nullptr);

/// What git would start by itself in this checkout, by its own configuration: see `blocking_find_git_programs`. Agent
/// CLIs call git when they start.
[[nodiscard]] std::vector<TrustedThing> blocking_find_git_things(const Project& project);
/// The names of its submodules, each of which has a configuration of its own.
[[nodiscard]] std::vector<std::string> blocking_find_submodules(const Project& project);

/// The first setting of the checkout that would decide where data goes: the store's address, the folder of limits.
[[nodiscard]] std::optional<TrustedThing> setting_that_needs_trust(const Settings& settings);

/// `Errc::denied`, naming the first of them and the way out.
[[nodiscard]] Error untrusted(const Project& project, const TrustedThing& thing);

}  // namespace stint::agent
