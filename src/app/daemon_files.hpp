/// The files by which commands find a daemon: its location in `daemons/`, and the token in a file that only its user
/// can read. Also the tokens of runs, which are only ever in the environment of the run's own processes.
#pragma once

#include "agent/project.hpp"
#include "cli/environment.hpp"
#include "domain/system.hpp"
#include "fleet/read_project.hpp"
#include "os/presence_file.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace stint::app {

struct DaemonFiles {
  std::filesystem::path daemons;  ///< a folder with one file per daemon
  std::filesystem::path token;    ///< shared by all of them
  std::string root;               ///< the checkout
};
[[nodiscard]] Result<DaemonFiles> blocking_daemon_files(const cli::Environment& environment,
                                                        const agent::Project& project);

/// Reads the token, or creates it. `denied` if other users could read the file. `repository`: the file lies in its
/// folder, and a token that was not created here is replaced, since another user may know it; null: the file lies in
/// the user's own folder.
[[nodiscard]] Result<std::string> blocking_token(const std::filesystem::path& file, const domain::System& system,
                                                 const project::Snapshot* repository = nullptr);

/// Writes the daemon's location, valid while the process lives, and removes files of dead daemons.
[[nodiscard]] Result<os::PresenceFile> blocking_write_location(const DaemonFiles& files, const std::string& url);

/// Prints address, token, store and agents, for people or as JSON.
void announce(const std::string& url, const std::string& token, const project::Snapshot& snapshot,
              const std::string& store, bool json);

/// A token for each run that this node carries, `run-<id>-<secret>`, valid while it is carried.
class RunTokens {
 public:
  using IsCarried = std::function<bool(std::string_view run)>;
  RunTokens(const domain::System& system, IsCarried is_carried) : system_(system), is_carried_(std::move(is_carried)) {}

  [[nodiscard]] std::string token_of(const std::string& run);
  /// The run with this token; empty: none. Compares secrets in constant time.
  [[nodiscard]] std::string run_of(std::string_view token) const;

 private:
  const domain::System& system_;
  const IsCarried is_carried_;
  std::map<std::string, std::string, std::less<>> secrets_;  // by run
  std::size_t tidy_at_ = 64;
};

}  // namespace stint::app
