#include "store/postgres_proxy.hpp"

#include <array>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace stint::store {
namespace {

constexpr std::size_t kHeader = 5;  // a letter and a length that includes itself

os::Fd make_socket() { return os::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

sockaddr_un address_of(const std::string& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder + "/.s.PGSQL.5432";
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

std::size_t length_at(const std::string& bytes, std::size_t at) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length = length << 8U | static_cast<unsigned char>(bytes[at + i]);
  return length;
}

bool blocking_send(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

/// The two ends of one connection, with the bytes received from each.
class PostgresProxy::Pipe {
 public:
  Pipe(int client, int server, int end) : client_(client), server_(server), end_(end) {}

  /// The client's first message has no letter; the server answers until it is ready.
  bool blocking_greet() {
    while (from_client_.size() < 4 || from_client_.size() < length_at(from_client_, 0)) {
      if (!blocking_read(client_, from_client_)) return false;
    }
    return blocking_pass(from_client_, server_) && blocking_answer() && blocking_pass(from_server_, client_);
  }
  /// Reads until the client has sent a whole statement; passes on unsolicited messages of the server.
  bool blocking_request() {
    while (true) {
      if (const auto end = end_of(from_client_, "SQX")) {
        request_ = from_client_.substr(0, *end);
        from_client_.erase(0, *end);
        return true;
      }
      std::array<pollfd, 3> ready = {{{client_, POLLIN, 0}, {server_, POLLIN, 0}, {end_, POLLIN, 0}}};
      if (::poll(ready.data(), ready.size(), -1) < 0 || ready[2].revents != 0) return false;
      if (ready[1].revents != 0) {
        std::string unasked;
        if (!blocking_read(server_, unasked) || !blocking_send(client_, unasked)) return false;
      } else if (!blocking_read(client_, from_client_)) {
        return false;
      }
    }
  }
  /// Reads until the server is ready for the next statement.
  bool blocking_answer() {
    while (!end_of(from_server_, "Z")) {
      std::array<pollfd, 2> ready = {{{server_, POLLIN, 0}, {end_, POLLIN, 0}}};
      if (::poll(ready.data(), ready.size(), -1) < 0 || ready[1].revents != 0) return false;
      if (!blocking_read(server_, from_server_)) {
        blocking_send(client_, from_server_);  // its last message
        return false;
      }
    }
    return true;
  }
  bool blocking_pass_request() { return blocking_pass(request_, server_); }
  bool blocking_pass_answer() { return blocking_pass(from_server_, client_); }
  void blocking_cut(const Cut& cut) {
    const std::string& all = cut.where == Where::request ? request_ : from_server_;
    const auto bytes =
        cut.bytes < 0 ? std::ssize(all) + cut.bytes : std::min<std::ptrdiff_t>(cut.bytes, std::ssize(all));
    blocking_send(cut.where == Where::request ? server_ : client_,
                  std::string_view(all).substr(0, static_cast<std::size_t>(std::max<std::ptrdiff_t>(bytes, 0))));
  }

 private:
  /// The end of the first message that begins with one of these letters.
  static std::optional<std::size_t> end_of(const std::string& bytes, std::string_view letters) {
    for (std::size_t at = 0; at + kHeader <= bytes.size();) {
      const std::size_t next = at + 1 + length_at(bytes, at + 1);
      if (next > bytes.size()) return std::nullopt;
      if (letters.contains(bytes[at])) return next;
      at = next;
    }
    return std::nullopt;
  }
  static bool blocking_read(int from, std::string& into) {
    std::array<char, 65536> buffer;
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count > 0) into.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0;
  }
  static bool blocking_pass(std::string& bytes, int to) {
    const bool passed = blocking_send(to, bytes);
    bytes.clear();
    return passed;
  }

  int client_, server_, end_;
  std::string from_client_, from_server_, request_;
};

PostgresProxy::PostgresProxy(const std::string& server) : server_(server), listener_(make_socket()) {
  int ends[2] = {-1, -1};
  (void)!::pipe2(ends, O_CLOEXEC);
  ended_ = os::Fd(ends[0]);
  end_ = os::Fd(ends[1]);
  const sockaddr_un address = address_of(host());
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 16) != 0) {
    std::abort();
  }
  threads_.emplace_back([this] { blocking_accept(); });
}

PostgresProxy::~PostgresProxy() {
  end_ = os::Fd();  // the other end becomes readable
  threads_.front().join();
  for (auto thread = std::next(threads_.begin()); thread != threads_.end(); ++thread) thread->join();
}

void PostgresProxy::arm(Cut cut) {
  const std::lock_guard lock(mutex_);
  armed_ = cut;
  has_cut_ = false;
}

bool PostgresProxy::disarm() {
  const std::lock_guard lock(mutex_);
  armed_.reset();
  return has_cut_;
}

std::optional<PostgresProxy::Cut> PostgresProxy::next_statement() {
  const std::lock_guard lock(mutex_);
  if (!armed_ || armed_->statement-- > 0) return std::nullopt;
  has_cut_ = true;
  return std::exchange(armed_, std::nullopt);
}

void PostgresProxy::blocking_accept() {
  while (true) {
    std::array<pollfd, 2> ready = {{{listener_.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0 || ready[1].revents != 0) return;
    const int client = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) threads_.emplace_back([this, client] { blocking_serve(client); });
  }
}

void PostgresProxy::blocking_serve(int client) {
  const os::Fd ours(client), server = make_socket();
  const sockaddr_un address = address_of(server_);
  if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  Pipe pipe(client, server.get(), ended_.get());
  if (!pipe.blocking_greet()) return;
  while (pipe.blocking_request()) {
    const std::optional<Cut> cut = next_statement();
    if (cut && cut->where == Where::request) return pipe.blocking_cut(*cut);
    if (!pipe.blocking_pass_request() || !pipe.blocking_answer()) return;
    if (cut) return pipe.blocking_cut(*cut);
    if (!pipe.blocking_pass_answer()) return;
  }
}

}  // namespace stint::store
