/// A proxy for tests between a store and its PostgreSQL server. It knows where a statement and its answer begin and
/// end, and cuts the connection where the test asks. Has its own Unix socket and threads.
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
    int statement = 0;  ///< statements to pass before the cut
    Where where = Where::request;
    /// Bytes to pass before the cut; negative: all but so many. A cut request does not reach the server. An answer is
    /// cut after the server has sent it, and so has committed.
    int bytes = 0;
  };

  /// `server`: the folder of its socket.
  explicit PostgresProxy(const std::string& server);
  ~PostgresProxy();
  PostgresProxy(const PostgresProxy&) = delete;
  PostgresProxy& operator=(const PostgresProxy&) = delete;

  /// The folder of the proxy's socket: the host that a client names.
  [[nodiscard]] const std::string& host() const noexcept { return folder_.path(); }
  void arm(Cut cut);
  /// Whether it has cut a connection since arm().
  bool disarm();

 private:
  class Pipe;
  void blocking_accept();
  void blocking_serve(int client);
  std::optional<Cut> next_statement();

  const std::string server_;
  os::TestFolder folder_;
  os::Fd listener_, end_, ended_;  // the last two: a pipe that ends all threads
  std::mutex mutex_;
  std::optional<Cut> armed_;
  bool has_cut_ = false;
  std::list<std::thread> threads_;
};

}  // namespace stint::store
