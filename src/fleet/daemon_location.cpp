#include "fleet/daemon_location.hpp"

#include "agent/files.hpp"
#include "agent/trust.hpp"
#include "os/presence_file.hpp"
#include "wire/daemon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace stint::fleet {
namespace {

constexpr std::size_t kFileMax = 64 << 10;
constexpr std::size_t kFilesMax = 1000;

std::string variable(const project::Location& location, const char* name) {
  const auto found = location.variables.find(name);
  return found == location.variables.end() ? std::string() : found->second;
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::string blocking_read_token(const std::string& file) {
  std::error_code error;
  if (file.empty() || !std::filesystem::is_regular_file(std::filesystem::symlink_status(file, error))) return {};
  auto text = agent::blocking_read_file(file, kFileMax);
  if (!text) return {};
  while (text->ends_with('\n')) text->pop_back();
  return std::move(*text);
}

struct Found {
  wire::DaemonPlace place;
  std::filesystem::path file;
  std::filesystem::file_time_type since;
};

/// The files of daemons that are alive.
std::vector<Found> blocking_read_places(const std::filesystem::path& folder,
                                        const agent::EnvironmentVariables& environment) {
  std::vector<Found> found;
  const auto entries = agent::blocking_list_folder(folder / "daemons", kFilesMax);
  if (!entries) return found;
  for (const std::string& name : entries->names) {
    const std::filesystem::path file = folder / "daemons" / name;
    if (!agent::blocking_is_own(file, environment)) continue;  // another user must not redirect our runs
    const auto text = os::blocking_read_presence(file.string());
    if (!text || file.extension() != ".json") continue;
    auto place = wire::read_daemon_place(*text);
    if (!place) continue;
    // The token must lie beside the file: its writer must not make us send another token to an address of theirs.
    if (std::filesystem::path(place->token_file).parent_path() != folder) place->token_file.clear();
    std::error_code ignored;
    found.push_back({std::move(*place), file, std::filesystem::last_write_time(file, ignored)});
  }
  return found;
}

/// The daemon that serves this checkout, else the newest of the repository.
Result<std::optional<DaemonLocation>> blocking_choose_place(const project::Location& location, const std::string& url) {
  STINT_TRY(const agent::Project project, project::blocking_find_own_project(location));
  std::filesystem::path folder;
  if (project.is_repository()) {
    folder = *project.common_dir / "stint";
  } else {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(location.variables));
    folder = places.state;
  }
  std::vector<Found> all = blocking_read_places(folder, location.variables);
  if (!url.empty()) std::erase_if(all, [&](const Found& each) { return without_slash(each.place.url) != url; });
  if (all.empty()) return std::nullopt;
  const std::string root = project.root.string();
  const Found& best = *std::ranges::max_element(
      all, {}, [&](const Found& each) { return std::pair(each.place.root == root, each.since); });
  DaemonLocation out;
  out.url = without_slash(best.place.url);
  out.token = blocking_read_token(best.place.token_file);
  if (best.place.root != root) out.elsewhere = best.place.root;
  out.remedy = fmt::format("{0} names it and its process {1} is alive; `kill {1}` if it hangs", best.file.string(),
                           best.place.pid);
  return out;
}

}  // namespace

Result<std::optional<DaemonLocation>> blocking_find_daemon(const project::Location& location) {
  const std::string url = without_slash(variable(location, "STINT_URL"));
  if (!url.empty() && !url.starts_with("http://") && !url.starts_with("https://")) {
    return fail(Errc::invalid, "STINT_URL is '" + url + "': write it as http://127.0.0.1:7717");
  }
  auto found = blocking_choose_place(location, url);
  if (!found && found.error() == Errc::denied) return found;
  if (url.empty() && (!found || !*found)) return found;
  DaemonLocation place = found && *found ? std::move(**found) : DaemonLocation();
  if (!url.empty()) {
    place.url = url;
    place.named = true;
    place.remedy = "STINT_URL names it";
  }
  // STINT_TOKEN goes only to STINT_URL: a file of the checkout must not choose where it is sent.
  if (const std::string token = variable(location, "STINT_TOKEN"); !url.empty() && !token.empty()) place.token = token;
  return place;
}

}  // namespace stint::fleet
