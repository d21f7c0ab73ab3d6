/// The codec for what the engine keeps in a run's row. Rows hold text; `wire/` owns its format.
#pragma once

#include "domain/driver.hpp"

#include <string>
#include <string_view>

namespace stint::pool {

class RunCodec {
 public:
  RunCodec() = default;
  virtual ~RunCodec() = default;
  RunCodec(const RunCodec&) = delete;
  RunCodec& operator=(const RunCodec&) = delete;

  [[nodiscard]] virtual std::string write(const domain::RunInput& input) const = 0;
  [[nodiscard]] virtual Result<domain::RunInput> read_input(std::string_view text) const = 0;
  [[nodiscard]] virtual std::string write(const domain::RunMemo& memo) const = 0;
  [[nodiscard]] virtual Result<domain::RunMemo> read_memo(std::string_view text) const = 0;
  /// A note is the text of an event: a tool call, a conversation that has begun.
  [[nodiscard]] virtual std::string write_note(std::string_view text) const = 0;
  [[nodiscard]] virtual std::string read_note(std::string_view data) const = 0;
  [[nodiscard]] virtual std::string write_span(const domain::Span& span) const = 0;
};

}  // namespace stint::pool
