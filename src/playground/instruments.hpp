/// Things that a lesson uses besides the library: a server that accepts connections, and a meter of model tokens. Both
/// only count; the observer reads the counts. One thread.
#pragma once

#include "stint/object_pool.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace stint::playground {

class Server {
 public:
  explicit Server(std::string name) : name_(std::move(name)) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t made() const noexcept { return made_; }
  [[nodiscard]] std::uint64_t discarded() const noexcept { return discarded_; }

 private:
  friend class Connection;
  const std::string name_;
  std::uint64_t made_ = 0, discarded_ = 0;
};

/// Costs something to make, and is gone when destroyed. Move-only; must not outlive its server.
class Connection {
 public:
  explicit Connection(Server& server) noexcept : server_(&server) { ++server.made_; }
  Connection(Connection&& other) noexcept : server_(std::exchange(other.server_, nullptr)) {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(server_, other.server_);
    return *this;
  }
  ~Connection() {
    if (server_ != nullptr) ++server_->discarded_;
  }

 private:
  Server* server_;
};

using ConnectionPool = ObjectPool<Connection>;

/// Counts the tokens that a model produces, and those that it produces while nothing reads them: paid for, and lost.
class TokenMeter {
 public:
  /// Reads the tokens during its lifetime.
  class Reader {
   public:
    explicit Reader(TokenMeter& meter) noexcept : meter_(meter) { ++meter_.readers_; }
    ~Reader() { --meter_.readers_; }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    TokenMeter& meter_;
  };

  void count() noexcept {
    ++tokens_;
    if (readers_ == 0) ++leaked_;
  }
  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::uint64_t leaked() const noexcept { return leaked_; }

 private:
  std::uint64_t tokens_ = 0, leaked_ = 0;
  std::uint32_t readers_ = 0;
};

}  // namespace stint::playground
