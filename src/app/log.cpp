#include "app/log.hpp"

#include "cli/printable.hpp"
#include "wire/log_line.hpp"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace stint::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLinesHeld = 8192;
constexpr auto kLastWords = 2s;  // how long the destructor waits for a slow reader

/// Does not use stdio: exit would wait for its lock.
void blocking_write(std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

/// The thread sleeps until there is a line: an idle daemon does not wake up for its log.
class StderrLog::Writer {
 public:
  Writer() : thread_([this] { blocking_write_lines(); }) {}
  ~Writer() { thread_.join(); }  // after blocking_finish()
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void write(std::string line) {
    {
      const std::lock_guard lock(mutex_);
      if (lines_.size() >= kLinesHeld) lines_.pop_front();
      lines_.push_back(std::move(line));
    }
    more_.notify_one();
  }
  /// Call when nothing more will be written. False: the reader did not take the rest in time.
  [[nodiscard]] bool blocking_finish() {
    std::unique_lock lock(mutex_);
    end_ = true;
    more_.notify_one();
    return ended_.wait_for(lock, kLastWords, [this] { return over_; });
  }

 private:
  void blocking_write_lines() {
    std::unique_lock lock(mutex_);
    while (true) {
      more_.wait(lock, [this] { return end_ || !lines_.empty(); });
      if (lines_.empty()) break;
      const std::string line = std::move(lines_.front()) + "\n";
      lines_.pop_front();
      lock.unlock();
      blocking_write(line);
      lock.lock();
    }
    over_ = true;
    ended_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable more_, ended_;
  std::deque<std::string> lines_;
  bool end_ = false, over_ = false;
  std::thread thread_;
};

StderrLog::StderrLog(const domain::System& system, Options options)
    : system_(system), options_(options), writer_(std::make_unique<Writer>()) {}

StderrLog::~StderrLog() {
  [[maybe_unused]] static Writer* left_behind = nullptr;  // its thread ends with the process, which is about to exit
  if (!writer_->blocking_finish()) left_behind = writer_.release();
}

void StderrLog::write(domain::LogLevel level, std::string_view what, std::vector<domain::LogField> fields) {
  if (!is_enabled(level)) return;
  const wire::LogLine line{system_.wall_now(), level, what, fields};
  writer_->write(options_.format == Format::json ? wire::to_json(line) : cli::printable(wire::to_text(line)));
}

}  // namespace stint::app
