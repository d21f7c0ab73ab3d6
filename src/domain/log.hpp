/// The logging port of a long-lived process. `app/` implements it; tests capture it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::domain {

enum class LogLevel : std::uint8_t { debug, info, warning, error };
[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

struct LogField {
  std::string_view name;  ///< a literal
  std::string value;      ///< empty: the field is omitted
  bool is_number = false;

  [[nodiscard]] static LogField number(std::string_view name, std::string digits) {
    return {name, std::move(digits), true};
  }
};

class Log {
 public:
  Log() = default;
  virtual ~Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// Whether this level is enabled. Check it before fields that are expensive to gather.
  [[nodiscard]] virtual bool is_enabled(LogLevel level) const noexcept = 0;
  /// Writes one line. Never waits. Fields must not contain secrets: output of agents has been masked before.
  virtual void write(LogLevel level, std::string_view what, std::vector<LogField> fields) = 0;
};

/// Discards everything.
class NoLog final : public Log {
 public:
  [[nodiscard]] bool is_enabled(LogLevel) const noexcept override { return false; }
  void write(LogLevel, std::string_view, std::vector<LogField>) override {}
};

}  // namespace stint::domain
