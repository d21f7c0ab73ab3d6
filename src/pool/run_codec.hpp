/// The codec for what the engine keeps in a run's row. Rows hold text; `wire/` owns its format.
#pragma once

#include "domain/driver.hpp"
#include "domain/verdict.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  /// A note with the place in the run's output at which it came.
  [[nodiscard]] virtual std::string write_note_at(std::string_view text, std::uint64_t /*output_at*/) const {
    return write_note(text);
  }
  [[nodiscard]] virtual std::optional<std::uint64_t> read_output_at(std::string_view /*data*/) const {
    return std::nullopt;
  }
  [[nodiscard]] virtual std::string write_span(const domain::Span& span) const = 0;
  /// None: the data is something else, or this codec keeps only text.
  [[nodiscard]] virtual std::optional<domain::Span> read_span(std::string_view /*data*/) const { return std::nullopt; }
  /// What a run waited for before it was claimed: the data of that event. Empty: this codec does not keep it.
  [[nodiscard]] virtual std::string write_waits(const std::vector<domain::LimitWait>& /*waits*/) const { return {}; }
  [[nodiscard]] virtual std::vector<domain::LimitWait> read_waits(std::string_view /*data*/) const { return {}; }
  /// The verdict about an attempt: the data of the event that ends it. Empty: this codec does not keep it.
  [[nodiscard]] virtual std::string write_verdict(const domain::VerdictRecord& /*verdict*/) const { return {}; }
  [[nodiscard]] virtual std::optional<domain::VerdictRecord> read_verdict(std::string_view /*data*/) const {
    return std::nullopt;
  }
};

}  // namespace stint::pool
