/// Trust: programs that a checkout names run on this machine only after a person ran `stint trust` for it, once.
///
/// The rule: trust belongs to a repository at its path, for one user: path, inode and birth time of its folder. It
/// covers all its worktrees and later changes of its files (agents that change agent files are an intended use), and
/// it ends with `--revoke`, or when another repository takes that path. It is kept outside the
/// checkout, where nothing in the checkout can write it.
///
/// Each record is a file of its own, created by rename and removed by unlink, so that processes never lose each
/// other's.
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
/// Above this, records of folders that no longer exist are removed: scripts may use a new folder for each run.
inline constexpr std::size_t kFolderRecordsMax = 1'000;

/// `Errc::denied` if a checkout, or a folder with settings, belongs to another user, as git refuses it: that user's
/// files would decide what runs here. `stint trust` confirms that this is intended.
[[nodiscard]] Result<> blocking_check_owner(const std::filesystem::path& state, const Project& project,
                                            const EnvironmentVariables& environment);

/// Whether a file belongs to this user; for root also to the user that called sudo. False if it does not exist.
[[nodiscard]] bool blocking_is_own(const std::filesystem::path& path, const EnvironmentVariables& environment);

/// The content of a store is data: a program that a run names is started only if a person named it on a command line of
/// this user (`stint run --program`).
[[nodiscard]] Result<> blocking_allow_program(const std::filesystem::path& state, const std::string& program);
[[nodiscard]] bool blocking_is_program_allowed(const std::filesystem::path& state, const std::string& program);

/// The same for the folder in which a run works: outside a repository all folders share a store, and a run whose
/// process was lost continues in its own folder. `folder` is a real path; one that was deleted and created again is
/// another.
[[nodiscard]] Result<> blocking_allow_folder(const std::filesystem::path& state, const std::filesystem::path& folder);
[[nodiscard]] Result<bool> blocking_is_folder_allowed(const std::filesystem::path& state,
                                                      const std::filesystem::path& folder);

/// Files in a repository's folder that a daemon trusts: the store, whose runs it starts, and its token. An unpacked
/// folder may bring its own, so this records that Stint is about to create one; before it is created, so that a second
/// process never sees a file without its record.
enum class OwnFile : std::uint8_t { store, token };
[[nodiscard]] Result<> blocking_note_own(const std::filesystem::path& state, OwnFile which,
                                         const std::filesystem::path& common_dir);
[[nodiscard]] bool blocking_is_own(const std::filesystem::path& state, OwnFile which,
                                   const std::filesystem::path& common_dir);

/// `Errc::denied` if the folders where Stint keeps its files in a checkout are symbolic links, and it is not trusted:
/// the files would be written elsewhere.
[[nodiscard]] Result<> blocking_check_links(const std::filesystem::path& state, const Project& project);

/// The folder of the homes of agents with `home: slot`: below the user's state, so that a checkout can't bring prepared
/// ones. A repository that is created again gets new ones.
[[nodiscard]] Result<std::filesystem::path> blocking_find_homes_of_agents(const std::filesystem::path& state,
                                                                          const Project& project);

/// `state` is the user's folder, see `user_places`. Fails if the record can't be trusted: then nothing may run,
/// either.
[[nodiscard]] Result<bool> blocking_is_trusted(const std::filesystem::path& state, const Project& project);
[[nodiscard]] Result<> blocking_trust(const std::filesystem::path& state, const Project& project);
/// Returns whether there was a record to revoke.
[[nodiscard]] Result<bool> blocking_revoke_trust(const std::filesystem::path& state, const Project& project);

struct TrustRecord {
  std::filesystem::path identity;  ///< of the project
  bool holds = false;              ///< false: gone, or replaced by another
};
[[nodiscard]] Result<std::vector<TrustRecord>> blocking_list_trust(const std::filesystem::path& state);

/// The parts of a project that run only with trust, each with the place that names it: commands of agents and tools,
/// arguments for CLIs (they can start servers, or skip every confirmation), full permissions, CLIs that read the
/// checkout's own settings, the gate, and where data and keys are sent.
struct TrustedThing {
  std::string what;
  std::string where;
};
[[nodiscard]] std::vector<TrustedThing> things_that_need_trust(const Catalogue& catalogue, const Settings& settings);
/// `driver`: the driver that does the agent's work, which may differ from the one in its file.
[[nodiscard]] std::vector<TrustedThing> things_that_need_trust(const domain::Agent& agent,
                                                               const domain::DriverDescriptor& driver);

/// Files of the checkout that agent CLIs read by themselves: they name hooks, MCP servers, further settings. For one
/// CLI, or for all (null).
[[nodiscard]] std::vector<TrustedThing> blocking_find_cli_settings(const std::filesystem::path& root,
                                                                   const domain::DriverDescriptor* driver = nullptr);

/// Programs that git would start by itself in this checkout, by its own configuration: see
/// `blocking_find_git_programs`. Agent CLIs call git when they start.
[[nodiscard]] std::vector<TrustedThing> blocking_find_git_things(const Project& project);
/// The names of its submodules, each of which has a configuration of its own.
[[nodiscard]] std::vector<std::string> blocking_find_submodules(const Project& project);

/// The first setting of the checkout that would decide where data goes: the store's address, the folder of limits.
[[nodiscard]] std::optional<TrustedThing> setting_that_needs_trust(const Settings& settings);

/// The first setting of the checkout that would decide where model calls and their keys go.
[[nodiscard]] std::optional<TrustedThing> endpoint_that_needs_trust(const Settings& settings);

/// `Errc::denied`, naming the first of them and the next step.
[[nodiscard]] Error untrusted(const Project& project, const TrustedThing& thing);

}  // namespace stint::agent
