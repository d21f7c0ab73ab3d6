/// The port to which a long-lived process tells what it does, as it does it. `app/` writes it down; tests listen.
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
  std::string value;      ///< left out if it is empty
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

  /// Whether anybody wants to know: who has to gather what to say asks before.
  [[nodiscard]] virtual bool hears(LogLevel level) const noexcept = 0;
  /// Never waits, and never a secret: what agents say has been through a mask.
  virtual void say(LogLevel level, std::string_view what, std::vector<LogField> fields) = 0;
};

/// For who needs no log.
class NoLog final : public Log {
 public:
  [[nodiscard]] bool hears(LogLevel) const noexcept override { return false; }
  void say(LogLevel, std::string_view, std::vector<LogField>) override {}
};

}  // namespace stint::domain
