/// A connection pool for coroutines of one executor: a semaphore limits, a list of idle connections reuses.
#pragma once

#include "stint/combinators.hpp"
#include "stint/error.hpp"
#include "stint/semaphore.hpp"
#include "stint/task.hpp"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

struct Connection {
  int number = 0;
  bool broken = false;
};

class ConnectionPool {
 public:
  using Connect = std::function<stint::Task<stint::Result<Connection>>()>;

  /// A borrowed connection and its place in the pool.
  class Lease {
   public:
    Lease() = default;
    Lease(ConnectionPool& pool, Connection connection, stint::Permit permit)
        : pool_(&pool), connection_(connection), permit_(std::move(permit)) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          connection_(other.connection_),
          permit_(std::move(other.permit_)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(connection_, other.connection_);
      std::swap(permit_, other.permit_);
      return *this;
    }
    /// The connection first; the permit follows when the members are destroyed. In the opposite order, the next waiter
    /// would find nothing idle and create one connection too many.
    ~Lease() {
      if (pool_ != nullptr) pool_->put_back(connection_);
    }

    Connection& operator*() { return connection_; }
    Connection* operator->() { return &connection_; }

   private:
    ConnectionPool* pool_ = nullptr;
    Connection connection_;
    stint::Permit permit_;
  };

  ConnectionPool(std::uint32_t max, Connect connect) : places_("connections", max), connect_(std::move(connect)) {}

  stint::Task<stint::Result<Lease>> borrow(stint::Deadline deadline = {}) {
    co_return co_await stint::with_deadline(deadline, borrow_in_time());
  }
  void close() {
    places_.close();
    idle_.clear();
  }
  std::size_t idle() const { return idle_.size(); }

 private:
  /// A stop may come at each await; the permit is a local variable, so it is returned.
  stint::Task<stint::Result<Lease>> borrow_in_time() {
    STINT_CO_TRY(stint::Permit permit, co_await places_.acquire());
    if (!idle_.empty()) {
      const Connection connection = idle_.back();  // LIFO: the most recently used
      idle_.pop_back();
      co_return Lease(*this, connection, std::move(permit));
    }
    STINT_CO_TRY(const Connection fresh, co_await connect_());
    co_return Lease(*this, fresh, std::move(permit));
  }
  void put_back(const Connection& connection) {
    if (!connection.broken && !places_.closed()) idle_.push_back(connection);
  }

  stint::Semaphore places_;
  Connect connect_;
  std::vector<Connection> idle_;
};
