/// Stands between a store and its PostgreSQL server under test, knows where a statement and its answer begin and end,
/// and cuts the connection where it is told to. On a Unix socket of its own; threads of its own.
#pragma once

#include "os/fd.hpp"
#include "os/test_folder.hpp"

#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace stint::store {

class PostgresProxy {
 public:
  enum class Where : std::uint8_t { request, answer };
  struct Cut {
    int statement = 0;  ///< so many more are let through
    Where where = Where::request;
    /// So many bytes still pass; negative: all but so many. A request that does not pass is not carried out; before an
    /// answer is cut, the server has given it, and with it has committed.
    int bytes = 0;
  };

  /// `server`: the folder of its socket.
  explicit PostgresProxy(const std::string& server);
  ~PostgresProxy();
  PostgresProxy(const PostgresProxy&) = delete;
  PostgresProxy& operator=(const PostgresProxy&) = delete;

  /// The folder of our socket: what a client names as its host.
  [[nodiscard]] const std::string& host() const noexcept { return folder_.path(); }
  void arm(Cut cut);
  /// Whether it has cut since arm().
  bool disarm();

 private:
  class Pipe;
  void blocking_accept();
  void blocking_serve(int client);
  std::optional<Cut> next_statement();

  const std::string server_;
  os::TestFolder folder_;
  os::Fd listener_, end_, ended_;  // the last two: a pipe that tells all threads to end
  std::mutex mutex_;
  std::optional<Cut> armed_;
  bool has_cut_ = false;
  std::list<std::thread> threads_;
};

}  // namespace stint::store
