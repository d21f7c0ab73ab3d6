#include "cli/output_buffer.hpp"

#include "cli/print.hpp"
#include "stint/time.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <unistd.h>

namespace stint::cli {
namespace {

// Polled: epoll can't wait for a regular file, and a shared pipe must stay blocking.
constexpr Duration kAskEvery = std::chrono::milliseconds(10);

bool takes_more(int descriptor) {
  pollfd asked = {descriptor, POLLOUT, 0};
  return ::poll(&asked, 1, 0) == 1;
}

}  // namespace

void OutputBuffer::put(std::string_view text) {
  if (closed_ || text.empty()) return;
  kept_ += text;
  write_some();
  if (!full_ && kept_.size() > kFull) {
    full_ = true;
    if (on_full_) on_full_(true);
  }
  if (!kept_.empty()) put_.notify();
}

/// A pipe that polls as writable takes PIPE_BUF bytes without blocking.
void OutputBuffer::write_some() {
  std::size_t written = 0;
  while (written < kept_.size() && !closed_ && takes_more(descriptor_)) {
    const std::size_t size = std::min<std::size_t>(kept_.size() - written, PIPE_BUF);
    const ssize_t got = ::write(descriptor_, kept_.data() + written, size);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) break;
    closed_ = got < 0;
    if (closed_) note_lost_output(errno);
    if (!closed_) written += static_cast<std::size_t>(got);
  }
  kept_.erase(0, closed_ ? kept_.size() : written);
  if (full_ && kept_.empty()) {
    full_ = false;
    if (on_full_) on_full_(false);
  }
  if (kept_.empty()) written_.notify();
}

Task<> OutputBuffer::run() {
  while (true) {
    const std::uint64_t seen = put_.count();
    if (kept_.empty()) co_await put_.wait(seen);
    co_await sleep_for(kAskEvery);
    write_some();
  }
}

Task<> OutputBuffer::drained() {
  while (!kept_.empty()) co_await written_.wait(written_.count());
}

}  // namespace stint::cli
