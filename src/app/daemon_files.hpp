/// What a daemon leaves for others to find it: a file in `daemons/`, and the token in a file that only its user reads.
/// And the tokens of runs, which are never written anywhere but into their own processes' environment.
#pragma once

#include "agent/project.hpp"
#include "cli/environment.hpp"
#include "domain/system.hpp"
#include "fleet/read_project.hpp"
#include "os/living_file.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace stint::app {

struct DaemonFiles {
  std::filesystem::path daemons;  ///< a folder: each has a file of its own in it
  std::filesystem::path token;    ///< of all of them
  std::string root;               ///< the checkout
};
[[nodiscard]] Result<DaemonFiles> blocking_daemon_files(const cli::Environment& environment,
                                                        const agent::Project& project);

/// The token, made if there is none. `denied` if others could read the file. `repository`: the file lies in its folder,
/// and one that was not made here is replaced, since a stranger may know it; null: in the user's own.
[[nodiscard]] Result<std::string> blocking_token(const std::filesystem::path& file, const domain::System& system,
                                                 const project::Snapshot* repository = nullptr);

/// Says where this daemon is as long as it lives, and tidies up after those that died.
[[nodiscard]] Result<os::LivingFile> blocking_say_where(const DaemonFiles& files, const std::string& url);

/// For people, or as JSON for programs.
void announce(const std::string& url, const std::string& token, const project::Snapshot& snapshot,
              const std::string& store, bool json);

/// A key for each run that is carried here, `run-<id>-<secret>`, good as long as it is.
class RunTokens {
 public:
  using IsCarried = std::function<bool(std::string_view run)>;
  RunTokens(const domain::System& system, IsCarried is_carried) : system_(system), is_carried_(std::move(is_carried)) {}

  [[nodiscard]] std::string token_of(const std::string& run);
  /// Empty: it is nobody's. What it takes to say so does not depend on how much of a secret was right.
  [[nodiscard]] std::string run_of(std::string_view token) const;

 private:
  const domain::System& system_;
  const IsCarried is_carried_;
  std::map<std::string, std::string, std::less<>> secrets_;  // by run
  std::size_t tidy_at_ = 64;
};

}  // namespace stint::app
