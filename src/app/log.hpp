/// A daemon's log: lines on stderr, written by a thread of its own, so that a slow reader does not block the daemon.
/// The buffer is bounded: when it is full, the oldest lines are dropped.
#pragma once

#include "domain/log.hpp"
#include "domain/system.hpp"

#include <memory>

namespace stint::app {

class StderrLog final : public domain::Log {
 public:
  enum class Format : std::uint8_t { text, json };
  struct Options {
    Format format = Format::text;
    domain::LogLevel least = domain::LogLevel::info;
  };
  StderrLog(const domain::System& system, Options options);
  ~StderrLog() override;

  [[nodiscard]] bool is_enabled(domain::LogLevel level) const noexcept override { return level >= options_.least; }
  void write(domain::LogLevel level, std::string_view what, std::vector<domain::LogField> fields) override;

 private:
  class Writer;
  const domain::System& system_;
  const Options options_;
  std::unique_ptr<Writer> writer_;
};

}  // namespace stint::app
