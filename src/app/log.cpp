#include "app/log.hpp"

#include "wire/log_line.hpp"

#define SPDLOG_HEADER_ONLY
#define SPDLOG_FMT_EXTERNAL
#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <unistd.h>

namespace stint::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLinesHeld = 8192;
constexpr auto kLastWords = 2s;  // so long an end waits for who should read them

/// Only the log's thread writes.
class Stderr final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  [[nodiscard]] bool is_writing() const noexcept { return writing_.load(); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    writing_ = true;
    const std::string line = std::string(message.payload.data(), message.payload.size()) + "\n";
    // Not by stdio, whose lock an exit would wait for.
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
      if (written < 0 && errno != EINTR) break;
      if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    }
    writing_ = false;
  }
  void flush_() override {}

  std::atomic<bool> writing_ = false;
};

}  // namespace

class StderrLog::Writer {
 public:
  void write(const std::string& line) { logger_->info(spdlog::string_view_t(line)); }
  /// False: somebody should read and does not.
  [[nodiscard]] bool blocking_finish() const {
    const auto until = std::chrono::steady_clock::now() + kLastWords;
    while (threads_->queue_size() > 0 || stderr_->is_writing()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

 private:
  std::shared_ptr<Stderr> stderr_ = std::make_shared<Stderr>();
  std::shared_ptr<spdlog::details::thread_pool> threads_ =
      std::make_shared<spdlog::details::thread_pool>(kLinesHeld, 1);
  std::shared_ptr<spdlog::async_logger> logger_ =
      std::make_shared<spdlog::async_logger>("stint", stderr_, threads_, spdlog::async_overflow_policy::overrun_oldest);
};

StderrLog::StderrLog(const domain::Ambient& ambient, Options options)
    : ambient_(ambient), options_(options), writer_(std::make_unique<Writer>()) {}

StderrLog::~StderrLog() {
  [[maybe_unused]] static Writer* left_behind = nullptr;  // its thread ends with the process, which is about to
  if (!writer_->blocking_finish()) left_behind = writer_.release();
}

void StderrLog::say(domain::LogLevel level, std::string_view what, std::vector<domain::LogField> fields) {
  if (!hears(level)) return;
  const wire::LogLine line{ambient_.wall_now(), level, what, fields};
  writer_->write(options_.format == Format::json ? wire::to_json(line) : wire::to_text(line));
}

}  // namespace stint::app
