/// A PostgreSQL server of their own for the tests of a program: from Debian's packages, in a folder that goes with it,
/// on a socket that only they know. It ends with the program, also when that crashes. `STINT_TEST_POSTGRES=URL` names
/// another server to be used instead; databases are made there, and dropped.
#pragma once

#include "os/test_folder.hpp"
#include "stint/error.hpp"

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace stint::store {

class PostgresServer {
 public:
  static constexpr const char* kVariable = "STINT_TEST_POSTGRES";  ///< the URL of another

  /// Why there can be none here; empty: there can.
  static std::string why_not();
  /// That of this program, started by its first user. `durable`: what is committed survives a crash, at the price of
  /// time.
  static Result<std::unique_ptr<PostgresServer>> blocking_start(bool durable);
  ~PostgresServer();

  [[nodiscard]] std::string url(const std::string& database) const;
  [[nodiscard]] const std::string& folder() const noexcept { return folder_path_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool is_ours() const noexcept { return !folder_path_.empty(); }
  /// The server and all its processes at once, as by a power failure of its machine.
  void blocking_kill();
  Result<> blocking_start_again();
  /// A program of its own folder, or one by its path, as the user who owns the data: neither initdb nor the server runs
  /// as root. Ends with us.
  [[nodiscard]] Result<pid_t> spawn(std::string program, std::vector<std::string> arguments) const;

 private:
  PostgresServer() = default;
  [[nodiscard]] Result<> blocking_make();
  [[nodiscard]] Result<> blocking_initdb();

  std::string foreign_url_;  // of a server that is not ours
  std::unique_ptr<os::TestFolder> folder_;
  std::string folder_path_;
  bool durable_ = false;
  pid_t pid_ = 0;
};

}  // namespace stint::store
