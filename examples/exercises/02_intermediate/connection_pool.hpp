/// Your connection pool. README.md beside this file has the steps.
/// Fill in the bodies, and add the members you need. The signatures stay as they are.
#pragma once

#include "stint/combinators.hpp"
#include "stint/error.hpp"
#include "stint/semaphore.hpp"
#include "stint/task.hpp"

#include <cstdint>
#include <functional>
#include <vector>

struct Connection {
  int number = 0;
  bool broken = false;
};

class ConnectionPool {
 public:
  using Connect = std::function<stint::Task<stint::Result<Connection>>()>;

  /// A borrowed connection; returns to the pool when the lease is destroyed. Must not outlive the pool.
  class Lease {
   public:
    Lease() = default;
    Connection& operator*() { return connection_; }
    Connection* operator->() { return &connection_; }

   private:
    Connection connection_;
    stint::Permit permit_;  // its place; returned when the lease is destroyed
  };

  /// At most `max` leases at a time; `connect` creates a connection.
  ConnectionPool(std::uint32_t max, Connect connect) : connect_(std::move(connect)) { (void)max; }

  /// Waits for a place, then for a connection: one that is idle, or else a new one. All of it before `deadline`.
  stint::Task<stint::Result<Lease>> borrow(stint::Deadline deadline = {}) {
    (void)deadline;
    co_return stint::fail(stint::Errc::failed, "ConnectionPool::borrow is not written yet");
  }
  /// From here on `borrow` fails; idle connections are destroyed.
  void close() {}
  /// Idle connections.
  std::size_t idle() const { return 999; }

 private:
  Connect connect_;
};
