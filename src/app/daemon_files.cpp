#include "app/daemon_files.hpp"

#include "agent/trust.hpp"
#include "cli/open.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "http/guard.hpp"
#include "os/fd.hpp"
#include "os/owner.hpp"
#include "os/private_file.hpp"
#include "wire/daemon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::app {
namespace {

constexpr int kTokenWords = 4;  // of 64 bits
constexpr std::string_view kRunToken = "run-";

std::string random_text(const domain::System& system) {
  std::string text;
  text.reserve(kTokenWords * 2 * sizeof(std::uint64_t));
  for (int i = 0; i < kTokenWords; ++i) text += fmt::format("{:016x}", system.random());
  return text;
}

}  // namespace

Result<DaemonFiles> blocking_daemon_files(const cli::Environment& environment, const agent::Project& project) {
  std::filesystem::path folder;
  if (project.is_repository()) {
    folder = *project.common_dir / "stint";
  } else {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(environment.variables));
    folder = places.state;
  }
  const DaemonFiles files{folder / "daemons", folder / "token", project.root.string()};
  std::error_code error;
  std::filesystem::create_directories(files.daemons, error);
  if (error) return fail(Errc::failed, "cannot create " + files.daemons.string() + ": " + error.message());
  return files;
}

Result<std::string> blocking_token(const std::filesystem::path& file, const domain::System& system,
                                   const project::Snapshot* repository) {
  const auto is_own = [repository] {
    return repository == nullptr ||
           agent::blocking_is_own(repository->state, agent::OwnFile::token, *repository->checkout.project.common_dir);
  };
  struct stat found{};
  if (::lstat(file.c_str(), &found) == 0) {
    if (const std::string owner = os::foreign_owner(file.string()); !owner.empty()) {
      return fail(Errc::denied, file.string() + " is the token of the daemon of " + owner +
                                    ", who serves this checkout. Use a clone of your own");
    }
    if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) {
      return fail(Errc::denied,
                  file.string() + ": other users could read the token. `chmod 600` it, or delete it to get a new one");
    }
    std::string text = os::read_small_file(file.string());
    while (text.ends_with('\n')) text.pop_back();
    if (text.size() >= 32 && is_own()) return text;
  }
  std::string token = random_text(system);
  if (repository != nullptr) {
    STINT_CHECK(
        agent::blocking_note_own(repository->state, agent::OwnFile::token, *repository->checkout.project.common_dir));
  }
  STINT_CHECK(os::blocking_write_private(file, token + "\n"));
  return token;
}

Result<os::PresenceFile> blocking_write_location(const DaemonFiles& files, const std::string& url) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(files.daemons, ignored)) {
    const bool lives = os::blocking_read_presence(entry.path().string()).has_value();
    if (entry.path().extension() == ".json" && !lives) ::unlink(entry.path().c_str());
  }
  const std::string name = std::to_string(::getpid());
  std::filesystem::path path = files.daemons / (name + ".json");
  // A daemon in another container may have the same pid.
  for (int i = 2; os::blocking_read_presence(path.string()); ++i)
    path = files.daemons / fmt::format("{}-{}.json", name, i);
  const wire::DaemonPlace place{url, static_cast<std::int64_t>(::getpid()), files.token.string(), files.root};
  STINT_TRY(os::PresenceFile file, os::PresenceFile::blocking_write(path.string(), wire::to_json(place) + "\n"));
  // A link to the newest daemon's file, for readers that need only one. It dangles when that daemon is gone.
  const std::filesystem::path newest = files.daemons.parent_path() / "daemon.json";
  const std::filesystem::path aside = newest.string() + "." + name;
  std::filesystem::create_symlink(files.daemons.filename() / path.filename(), aside, ignored);
  std::filesystem::rename(aside, newest, ignored);
  return file;
}

void announce(const std::string& url, const std::string& token, const project::Snapshot& snapshot,
              const std::string& store, bool json) {
  const std::size_t agents = snapshot.catalogue.agents.size();
  if (json) {
    cli::print_out("{}\n", wire::to_json(wire::Serving{url, token, store, agents}));
    cli::flush_out();
    return;
  }
  cli::print_out("Serving {} agent{} from {} on {}\n", agents, agents == 1 ? "" : "s",
                 cli::printable(snapshot.checkout.project.root.string()), url);
  cli::print_out("  store  {}\n", cli::printable(store));
  if (!token.empty()) cli::print_out("  token  {}\n", token);
  cli::print_out("  page   {}\n", cli::dashboard_address(url, token));
  for (const domain::Agent& agent : snapshot.catalogue.agents) {
    const auto& refused = snapshot.registry.at(agent.name).refused;
    if (refused) cli::print_out("  {} can't run: {}\n", agent.name, cli::printable(refused->describe()));
  }
  for (const std::string& name : snapshot.catalogue.broken) {
    cli::print_out("  {} can't run: its file has errors; `stint agents` shows them\n", name);
  }
  if (agents == 0 && snapshot.catalogue.broken.empty()) {
    cli::print_out("  There is no agent yet: `{}stint init` writes some, then `kill -HUP {}` loads them.\n",
                   snapshot.checkout.project.is_repository() ? "" : "git init && ", ::getpid());
  }
  cli::print_out("  try    stint submit AGENT …   stint ls   stint top   stint open   (Ctrl-C drains)\n");
  cli::flush_out();
}

std::string RunTokens::token_of(const std::string& run) {
  if (secrets_.size() >= tidy_at_) {
    std::erase_if(secrets_, [this](const auto& each) { return !is_carried_(each.first); });
    tidy_at_ = std::max<std::size_t>(64, 2 * secrets_.size());
  }
  std::string& secret = secrets_[run];
  if (secret.empty()) secret = random_text(system_);
  return std::string(kRunToken) + run + "-" + secret;
}

std::string RunTokens::run_of(std::string_view token) const {
  if (!token.starts_with(kRunToken)) return {};
  token.remove_prefix(kRunToken.size());
  const std::size_t dash = token.find('-');
  if (dash == std::string_view::npos) return {};
  const auto found = secrets_.find(token.substr(0, dash));
  if (found == secrets_.end() || !http::same_secret(token.substr(dash + 1), found->second)) return {};
  return is_carried_(found->first) ? found->first : std::string();
}

}  // namespace stint::app
