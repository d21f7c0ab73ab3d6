/// A PostgreSQL server for the tests of one program: from Debian's packages, in a temporary folder, on a private
/// socket. It ends with the program, also when that crashes. `STINT_TEST_POSTGRES=URL` selects an existing server
/// instead; the tests create databases there and drop them.
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
  static constexpr const char* kVariable = "STINT_TEST_POSTGRES";  ///< URL of an existing server

  /// Why no server can run here; empty: one can.
  static std::string why_not();
  /// The server of this program, started by its first user. `durable`: commits survive a crash, which is slower.
  static Result<std::unique_ptr<PostgresServer>> blocking_start(bool durable);
  ~PostgresServer();

  [[nodiscard]] std::string url(const std::string& database) const;
  [[nodiscard]] const std::string& folder() const noexcept { return folder_path_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool is_ours() const noexcept { return !folder_path_.empty(); }
  /// Kills the server and all its processes at once, like a power failure.
  void blocking_kill();
  Result<> blocking_start_again();
  /// Starts a program of the server's folder, or one by its path, as the user who owns the data: neither initdb nor
  /// the server runs as root. The process ends with this one.
  [[nodiscard]] Result<pid_t> spawn(std::string program, std::vector<std::string> arguments) const;

 private:
  PostgresServer() = default;
  [[nodiscard]] Result<> blocking_make();
  [[nodiscard]] Result<> blocking_initdb();

  std::string foreign_url_;  // of an existing server
  std::unique_ptr<os::TestFolder> folder_;
  std::string folder_path_;
  bool durable_ = false;
  pid_t pid_ = 0;
};

}  // namespace stint::store
