#include "http/server_state.hpp"

#include "http/connection.hpp"
#include "http/response.hpp"

namespace stint::http {
namespace {

constexpr std::size_t kKeptOutMax = 64 << 10;

}  // namespace

ServerState::ServerState(Reactor& on, Handler& by, ServerOptions with)
    : reactor(on),
      handler(by),
      options(std::move(with)),
      turns(options.connections_per_turn),
      reads("http reads", options.reads_at_once_max) {
  rules.listen_host = options.address;
  rules.allowed_hosts = options.allowed_hosts;
  rules.token = options.token;
  rules.other_token = options.other_token;
  rules.is_open = options.is_open;
}

Task<> Turns::run() {
  while (true) {
    const std::uint64_t seen = notification_.count();
    if (waiting_.empty()) co_await notification_.wait(seen);
    for (std::size_t i = 0; i < at_once_ && !waiting_.empty(); ++i) {
      Turn& next = waiting_.front();
      next.unlink();
      next.take();
    }
    co_await yield();
  }
}

void Turns::open() noexcept {
  open_ = true;
  while (!waiting_.empty()) {
    Turn& next = waiting_.front();
    next.unlink();
    next.take();
  }
}

Connection* ServerState::evictable() noexcept {
  if (!idle.empty()) return &idle.front();
  return heads.empty() ? nullptr : &heads.front();
}

std::unique_ptr<Buffers> ServerState::borrow_buffers() {
  std::unique_ptr<Buffers> buffers;
  if (spare_buffers.empty()) {
    buffers = std::make_unique<Buffers>(options.request);
  } else {
    buffers = std::move(spare_buffers.back());
    spare_buffers.pop_back();
  }
  if (!buffers->input) buffers->input = std::make_unique_for_overwrite<char[]>(Buffers::kInputBytes);
  return buffers;
}

void ServerState::give_back(std::unique_ptr<Buffers> buffers) noexcept {
  if (spare_buffers.size() >= kBuffersKeptMax) return;
  buffers->reader.next();
  buffers->begin = buffers->end = buffers->sent = 0;
  buffers->out.clear();
  std::string().swap(buffers->tail);  // an assignment would keep its memory
  if (buffers->out.capacity() > kKeptOutMax) std::string().swap(buffers->out);
  spare_buffers.push_back(std::move(buffers));
}

std::string_view ServerState::date(TimePoint now) {
  if (options.wall_clock && now >= date_until_) {
    const auto wall = options.wall_clock();
    date_ = date_line(wall);
    const auto part = wall - std::chrono::floor<std::chrono::seconds>(wall);
    date_until_ = now + (std::chrono::seconds(1) - std::chrono::duration_cast<Duration>(part));
  }
  return date_;
}

}  // namespace stint::http
