#include "app/daemon_files.hpp"

#include "os/fd.hpp"
#include "wire/daemon.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::app {
namespace {

constexpr int kTokenWords = 4;  // of 64 bits

std::string random_text(const domain::Ambient& ambient) {
  std::string text;
  for (int i = 0; i < kTokenWords; ++i) text += fmt::format("{:016x}", ambient.random());
  return text;
}

/// Written aside and moved into place: who reads it never sees half of it.
Result<> blocking_write_private(const std::filesystem::path& path, const std::string& text) {
  const std::string aside = path.string() + fmt::format(".{}", ::getpid());
  const os::Fd file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(os::system_error("cannot write " + aside));
  const bool written = ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::fsync(file.get()) != 0 || ::rename(aside.c_str(), path.c_str()) != 0) {
    const Error error = os::system_error("cannot write " + path.string());
    ::unlink(aside.c_str());
    return fail(error);
  }
  return {};
}

}  // namespace

Result<DaemonFiles> blocking_daemon_files(const cli::Surroundings& around, const agent::Project& project) {
  std::filesystem::path folder;
  if (project.is_repository()) {
    folder = *project.common_dir / "stint";
  } else {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(around.environment));
    folder = places.state;
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::failed, "cannot make " + folder.string() + ": " + error.message());
  return DaemonFiles{folder / "daemon.json", folder / "token"};
}

Result<std::string> blocking_token(const std::filesystem::path& file, const domain::Ambient& ambient) {
  struct stat found{};
  if (::lstat(file.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) {
      return fail(Errc::denied,
                  file.string() + ": others could read the token; `chmod 600` it, or delete it for a new one");
    }
    std::string text = os::read_small_file(file.string());
    while (text.ends_with('\n')) text.pop_back();
    if (text.size() >= 32) return text;
  }
  std::string token = random_text(ambient);
  STINT_CHECK(blocking_write_private(file, token + "\n"));
  return token;
}

Result<std::unique_ptr<DaemonFile>> DaemonFile::blocking_write(const DaemonFiles& files, const std::string& url) {
  std::string text = wire::to_json(wire::DaemonPlace{url, static_cast<std::int64_t>(::getpid()), files.token.string()});
  STINT_CHECK(blocking_write_private(files.daemon, text + "\n"));
  return std::make_unique<DaemonFile>(files.daemon, text + "\n");
}

DaemonFile::DaemonFile(std::filesystem::path path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

DaemonFile::~DaemonFile() {
  if (os::read_small_file(path_.string()) == text_) ::unlink(path_.c_str());
}

void announce(const std::string& url, const std::string& token, const cli::Reading& reading, const std::string& store,
              bool json) {
  if (json) {
    fmt::print("{}\n", wire::to_json(wire::Serving{url, token, store, reading.catalogue.agents.size()}));
  } else {
    fmt::print("Serving {} agents from {} on {}\n", reading.catalogue.agents.size(),
               reading.place.project.root.string(), url);
    fmt::print("  store  {}\n", store);
    if (!token.empty()) fmt::print("  token  {}\n", token);
    fmt::print("  try    stint submit AGENT …   stint ls   stint top   (Ctrl-C drains)\n");
  }
  std::fflush(stdout);
}

std::string RunTokens::token_of(const std::string& run) {
  const auto found = tokens_.find(run);
  if (found != tokens_.end()) return found->second;
  if (tokens_.size() >= kMost) {
    runs_.erase(tokens_.begin()->second);
    tokens_.erase(tokens_.begin());
  }
  std::string token = "run-" + random_text(ambient_);
  runs_[token] = run;
  tokens_[run] = token;
  return token;
}

std::string RunTokens::run_of(std::string_view token) const {
  const auto found = runs_.find(token);
  return found == runs_.end() ? std::string() : found->second;
}

}  // namespace stint::app
