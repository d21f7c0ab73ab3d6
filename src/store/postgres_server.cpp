#include "store/postgres_server.hpp"

#include "os/process.hpp"
#include "os/spawn.hpp"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <pwd.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace stint::store {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSetpriv = "/usr/bin/setpriv";

std::string variable() {
  const char* const url = std::getenv(PostgresServer::kVariable);
  return url == nullptr ? std::string() : url;
}

/// Debian's folder with the programs of the newest version; empty: none.
std::string programs() {
  std::string newest;
  int version = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const int found = std::atoi(entry.path().filename().c_str());
    if (found <= version || !fs::exists(entry.path() / "bin/postgres", ignored)) continue;
    version = found;
    newest = entry.path() / "bin";
  }
  return newest;
}

/// The user to own the data of a server, if this process is root.
const passwd* owner() {
  if (geteuid() != 0) return nullptr;
  const passwd* const postgres = getpwnam("postgres");
  return postgres != nullptr ? postgres : getpwnam("nobody");
}

Result<> give_to(const passwd* user, const std::string& path) {
  if (user == nullptr || ::lchown(path.c_str(), user->pw_uid, user->pw_gid) == 0) return {};
  return fail(os::system_error("cannot change the owner of " + path));
}

}  // namespace

std::string PostgresServer::why_not() {
  if (!variable().empty()) return {};
  if (programs().empty()) {
    return "PostgreSQL is not installed: install the package postgresql, or set " + std::string(kVariable) +
           " to a URL";
  }
  return fs::exists(kSetpriv) ? std::string() : std::string(kSetpriv) + " does not exist";
}

Result<std::unique_ptr<PostgresServer>> PostgresServer::blocking_start(bool durable) {
  if (const std::string reason = why_not(); !reason.empty()) return fail(Errc::unavailable, reason);
  std::unique_ptr<PostgresServer> server(new PostgresServer());
  server->durable_ = durable;
  server->foreign_url_ = variable();
  if (!server->foreign_url_.empty()) return server;
  STINT_CHECK(server->blocking_make());
  STINT_CHECK(server->blocking_start_again());
  return server;
}

PostgresServer::~PostgresServer() { blocking_kill(); }

std::string PostgresServer::url(const std::string& database) const {
  if (is_ours()) return "host=" + folder_path_ + " user=postgres dbname=" + database;
  const std::size_t begin = foreign_url_.find("://"), slash = foreign_url_.find('/', begin + 3);
  if (begin == std::string::npos) return foreign_url_ + " dbname=" + database;  // libpq uses the last of two
  const std::size_t question = foreign_url_.find('?', begin);
  const std::string rest = question == std::string::npos ? std::string() : foreign_url_.substr(question);
  return foreign_url_.substr(0, std::min(slash, question)) + "/" + database + rest;
}

Result<pid_t> PostgresServer::spawn(std::string program, std::vector<std::string> arguments) const {
  os::SpawnOptions options;
  options.program = kSetpriv;
  options.argv = {kSetpriv, "--pdeathsig=QUIT"};
  if (const passwd* const user = owner(); user != nullptr) {
    options.argv.push_back("--reuid=" + std::to_string(user->pw_uid));
    options.argv.push_back("--regid=" + std::to_string(user->pw_gid));
    options.argv.emplace_back("--clear-groups");
  }
  options.argv.push_back(program.starts_with('/') ? std::move(program) : programs() + "/" + program);
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.environment = os::environment_with({"LC_ALL=C", "TZ=UTC"});
  options.directory = folder_path_;
  os::Fd log(::open((folder_path_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  options.put = {{log.get(), 1}, {log.get(), 2}};
  return os::spawn(options);
}

Result<> PostgresServer::blocking_initdb() {
  STINT_TRY(const pid_t pid,
            spawn("initdb", {"--pgdata=" + folder_path_ + "/data", "--username=postgres", "--auth=trust",
                             "--encoding=UTF8", "--no-locale", "--no-sync", "--wal-segsize=1"}));
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? Result<>() : fail(Errc::failed, "initdb: " + folder_->read("log"));
}

/// initdb takes a second: its result is kept beside the program and copied in a tenth of that time.
Result<> PostgresServer::blocking_make() {
  folder_ = std::make_unique<os::TestFolder>();
  folder_path_ = folder_->path();
  const passwd* const user = owner();
  STINT_CHECK(give_to(user, folder_path_));
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const std::string kept =
      program.parent_path() / ("postgres-" + fs::path(programs()).parent_path().filename().string());
  const os::Fd lock(::open((kept + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) return blocking_initdb();
  std::error_code error;
  const fs::path data = folder_path_ + "/data";
  if (!fs::exists(kept, error)) {
    STINT_CHECK(blocking_initdb());
    fs::remove_all(kept + ".new", error);
    fs::copy(data, kept + ".new", fs::copy_options::recursive, error);
    if (!error) fs::rename(kept + ".new", kept, error);
    return {};
  }
  fs::copy(kept, data, fs::copy_options::recursive, error);
  if (error) return fail(Errc::failed, "cannot copy " + kept + ": " + error.message());
  fs::permissions(data, fs::perms::owner_all, error);
  STINT_CHECK(give_to(user, data));
  for (const auto& entry : fs::recursive_directory_iterator(data)) STINT_CHECK(give_to(user, entry.path()));
  return {};
}

Result<> PostgresServer::blocking_start_again() {
  std::vector<std::string> arguments = {"-D", folder_path_ + "/data", "-k", folder_path_};
  // No autovacuum: the feed waits for the oldest transaction, including those of autovacuum.
  for (const char* const setting :
       {"listen_addresses=", "autovacuum=off", "shared_buffers=16MB", "max_connections=40"}) {
    arguments.insert(arguments.end(), {"-c", setting});
  }
  if (!durable_) arguments.insert(arguments.end(), {"-c", "fsync=off", "-c", "synchronous_commit=off"});
  STINT_TRY(pid_, spawn("postgres", std::move(arguments)));
  return {};
}

void PostgresServer::blocking_kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGSTOP);  // stops it from forking while its children are counted
  siginfo_t about{};
  // Not reaped, if it had ended: the pid that is signalled below stays its own.
  ::waitid(P_PID, static_cast<id_t>(pid_), &about, WSTOPPED | WEXITED | WNOWAIT);
  const auto below = os::scan_descendants_of(pid_);  // signalled once: none may be missed
  ::kill(pid_, SIGKILL);
  os::signal_all(below, SIGKILL);
  ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  // A process that is still exiting holds the shared memory, and the next server would refuse to start.
  for (const os::Process& each : below) {
    while (true) {
      const auto now = os::read_process(each.pid);
      if (!now || now->start != each.start || now->is_zombie()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace stint::store
