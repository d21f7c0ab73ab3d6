// The arguments of a process are visible to every user of the machine, so the browser is not given the address with
// the token. It is given a file that only this user can read, which sends it there.
#include "cli/open.hpp"

#include "agent/project.hpp"
#include "cli/environment.hpp"
#include "cli/fleet_place.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "fleet/daemon_location.hpp"
#include "os/private_file.hpp"
#include "os/probe.hpp"
#include "os/spawn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fcntl.h>

namespace stint::cli {
namespace {

bool is_url_safe(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

std::string variable(const Environment& environment, const char* name) {
  const auto found = environment.variables.find(name);
  return found == environment.variables.end() ? std::string() : found->second;
}

/// The program that opens a file in the user's browser; empty: none, or there is no screen to show it on.
std::string find_opener(const Environment& environment) {
  const std::string path = variable(environment, "PATH");
  if (const std::string browser = variable(environment, "BROWSER"); !browser.empty()) {
    return browser.starts_with('/') ? browser : os::find_program(browser, path);
  }
  if (std::string wsl = os::find_program("wslview", path); !wsl.empty()) return wsl;
  const bool screen = !variable(environment, "DISPLAY").empty() || !variable(environment, "WAYLAND_DISPLAY").empty();
  return screen ? os::find_program("xdg-open", path) : std::string();
}

/// Both values are checked: neither can end the string that they are written into.
std::string redirect_page(const std::string& address) {
  return fmt::format(
      "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><title>Stint</title>"
      "<script>location.replace(\"{}\")</script>\n",
      address);
}

Result<> blocking_start(const std::string& opener, const std::filesystem::path& file) {
  const os::Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) return fail(os::system_error("cannot open /dev/null"));
  os::SpawnOptions options;
  options.program = opener;
  options.argv = {opener, file.string()};
  options.environment = os::environment_with({});
  options.put = {{nothing.get(), 0}, {nothing.get(), 1}, {nothing.get(), 2}};
  options.own_group = true;  // a browser that it starts outlives this command
  STINT_CHECK(os::spawn(options));
  return {};
}

Result<> blocking_open(const Environment& environment, const std::string& opener, const std::string& address) {
  STINT_TRY(const agent::UserPlaces places, agent::user_places(environment.variables));
  std::error_code error;
  std::filesystem::create_directories(places.state, error);
  const std::filesystem::path file = places.state / "open.html";
  STINT_CHECK(os::blocking_write_private(file, redirect_page(address)));
  return blocking_start(opener, file);
}

}  // namespace

std::string dashboard_address(const std::string& url, const std::string& token, const std::string& run) {
  const std::string page = run.empty() ? "" : "/run/" + run;
  if (token.empty()) return url + "/" + (page.empty() ? "" : "#" + page);
  return url + "/#" + page + (page.empty() ? "" : "?") + "token=" + token;
}

OpenCommand::OpenCommand(CLI::App& app) : command_(app, "open", "Open the dashboard of the daemon in a browser") {
  command_.footer(
      "Without a screen it prints the address. The address contains the daemon's token: keep it to yourself.\n"
      "$BROWSER names another browser. A browser in a sandbox may not be allowed to read the file that it is given: "
      "use --print.");
  command_.option("ID", id_, "Open the page of this run").value("");
  command_.flag("--print", print_, "Print the address, and open nothing");
}

bool OpenCommand::chosen() const { return command_.chosen(); }

int OpenCommand::run(const domain::System& /*system*/) {
  const Environment environment = blocking_read_environment();
  if (!is_url_safe(id_)) return complain(Error(Errc::invalid, "'" + printable(id_) + "' is not the id of a run"));
  const auto daemon = fleet::blocking_find_daemon(environment);
  if (!daemon) return complain(daemon.error());
  if (!*daemon) return complain(Error(Errc::unavailable, kNoDaemonHere));
  const std::string& url = (*daemon)->url;
  if (!is_url_safe((*daemon)->token) || url.find_first_of("\"\\<> \n") != std::string::npos) {
    return complain(Error(Errc::invalid, "the daemon's address or token has characters that no address has"));
  }
  const std::string address = dashboard_address(url, (*daemon)->token, id_);
  const std::string opener = print_ ? std::string() : find_opener(environment);
  if (opener.empty()) {
    print_out("{}\n", address);
    return kExitDone;
  }
  if (const auto opened = blocking_open(environment, opener, address); !opened) return complain(opened.error());
  print_out("Opening the dashboard in a browser. If nothing opens: stint open --print\n");
  return kExitDone;
}

}  // namespace stint::cli
