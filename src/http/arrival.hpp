/// Waits until a socket becomes ready. Armed once, the wait outlives the coroutine frames that use it: to arm it is a
/// system call. Internal to this folder: it includes Asio.
#pragma once

#include "stint/asio.hpp"

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <utility>

namespace stint::http {

/// With the executor's own type: `any_io_executor` costs a tenth of a small request.
using Socket = asio::basic_stream_socket<asio::ip::tcp, asio::io_context::executor_type>;

/// May be destroyed while armed: the pending operation then owns the shared state until the socket ends it.
class Arrival {
 public:
  class Listener {
   public:
    /// Called from the reactor's loop, with no frame on the stack. May arm it again.
    virtual void arrived(const Arrival& arrival, const boost::system::error_code& error) noexcept = 0;

   protected:
    Listener() = default;
    ~Listener() = default;
  };

  explicit Arrival(Listener& listener) : shared_(std::make_unique<Shared>()) {
    shared_->arrival = this;
    listener_ = &listener;
  }
  ~Arrival() {
    shared_->arrival = nullptr;
    if (shared_->armed) (void)shared_.release();
  }
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  void arm(Socket& socket, Socket::wait_type what) {
    if (std::exchange(shared_->armed, true)) return;
    socket.async_wait(what, Handler{std::unique_ptr<Shared, Landed>(shared_.get())});
  }

 private:
  /// Shared by the arrival and its operation; the last of the two destroys it.
  struct Shared {
    Arrival* arrival = nullptr;
    bool armed = false;
    alignas(std::max_align_t) std::byte memory[96];  // of the operation; its size is checked
  };
  struct Landed {  // the operation was completed or discarded
    void operator()(Shared* shared) const noexcept {
      shared->armed = false;
      if (shared->arrival == nullptr) delete shared;
    }
  };
  template <class T>
  struct Memory {
    using value_type = T;
    explicit Memory(Shared& in) noexcept : shared(&in) {}
    template <class U>
    Memory(const Memory<U>& other) noexcept : shared(other.shared) {}  // NOLINT: as allocators do
    T* allocate(std::size_t count) noexcept {
      STINT_ASSERT(count * sizeof(T) <= sizeof(shared->memory));
      return reinterpret_cast<T*>(shared->memory);
    }
    void deallocate(T*, std::size_t) noexcept {}
    friend bool operator==(const Memory&, const Memory&) = default;
    Shared* shared;
  };
  struct Handler {
    using allocator_type = Memory<void>;
    allocator_type get_allocator() const noexcept { return allocator_type(*shared); }
    void operator()(const boost::system::error_code& error) noexcept {
      Arrival* const arrival = shared->arrival;
      shared.reset();  // before it may be armed again
      if (arrival != nullptr) arrival->listener_->arrived(*arrival, error);
    }
    std::unique_ptr<Shared, Landed> shared;
  };

  std::unique_ptr<Shared> shared_;
  Listener* listener_;
};

}  // namespace stint::http
