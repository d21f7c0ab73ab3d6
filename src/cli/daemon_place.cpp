#include "cli/daemon_place.hpp"

#include "agent/files.hpp"
#include "os/process.hpp"
#include "wire/daemon.hpp"

namespace stint::cli {
namespace {

constexpr std::size_t kFileMax = 64 << 10;

std::string variable(const Surroundings& around, const char* name) {
  const auto found = around.environment.find(name);
  return found == around.environment.end() ? std::string() : found->second;
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

/// What the daemon of the project said when it started, if its process lives.
Result<std::optional<wire::DaemonPlace>> blocking_read_place(const Surroundings& around) {
  STINT_TRY(const agent::Project project, agent::blocking_find_project(around.folder));
  std::filesystem::path folder;
  if (project.is_repository()) {
    folder = *project.common_dir / "stint";
  } else {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(around.environment));
    folder = places.state;
  }
  const auto text = agent::blocking_read_file(folder / "daemon.json", kFileMax);
  if (!text) return std::nullopt;
  auto place = wire::read_daemon_place(*text);
  if (!place) return std::nullopt;
  // Whoever could write the file must not make us send another one to an address of theirs.
  if (std::filesystem::path(place->token_file).parent_path() != folder) place->token_file.clear();
  const auto process = os::read_process(static_cast<pid_t>(place->pid));
  if (!process || process->is_zombie()) return std::nullopt;
  return *place;
}

std::string blocking_read_token(const std::string& file) {
  std::error_code error;
  if (file.empty() || !std::filesystem::is_regular_file(std::filesystem::symlink_status(file, error))) return {};
  auto text = agent::blocking_read_file(file, kFileMax);
  if (!text) return {};
  while (text->ends_with('\n')) text->pop_back();
  return std::move(*text);
}

}  // namespace

Result<std::optional<DaemonPlace>> blocking_find_daemon(const Surroundings& around) {
  const std::string url = without_slash(variable(around, "STINT_URL"));
  if (!url.empty() && !url.starts_with("http://") && !url.starts_with("https://")) {
    return fail(Errc::invalid, "STINT_URL is '" + url + "': write it as http://127.0.0.1:7717");
  }
  const auto read = blocking_read_place(around);
  if (url.empty() && !read) return fail(read.error());
  const std::optional<wire::DaemonPlace> place = read ? *read : std::nullopt;
  if (url.empty() && !place) return std::nullopt;
  DaemonPlace out;
  out.url = url.empty() ? without_slash(place->url) : url;
  out.token = variable(around, "STINT_TOKEN");
  if (out.token.empty() && place && without_slash(place->url) == out.url) {
    out.token = blocking_read_token(place->token_file);
  }
  return out;
}

std::function<std::optional<DaemonPlace>()> find_again_in(const Surroundings& around) {
  return [&around] { return blocking_find_daemon(around).value_or(std::nullopt); };
}

}  // namespace stint::cli
