/// The columns of a run that the engine stores as JSON.
#pragma once

#include "pool/run_codec.hpp"

namespace stint::wire {

class RunCodec final : public pool::RunCodec {
 public:
  [[nodiscard]] std::string write(const domain::RunInput& input) const override;
  [[nodiscard]] Result<domain::RunInput> read_input(std::string_view text) const override;
  [[nodiscard]] std::string write(const domain::RunMemo& memo) const override;
  [[nodiscard]] Result<domain::RunMemo> read_memo(std::string_view text) const override;
  [[nodiscard]] std::string write_note(std::string_view text) const override;
  [[nodiscard]] std::string read_note(std::string_view data) const override;
  [[nodiscard]] std::string write_note_at(std::string_view text, std::uint64_t output_at) const override;
  [[nodiscard]] std::optional<std::uint64_t> read_output_at(std::string_view data) const override;
  [[nodiscard]] std::string write_span(const domain::Span& span) const override;
  [[nodiscard]] std::optional<domain::Span> read_span(std::string_view data) const override;
  [[nodiscard]] std::string write_waits(const std::vector<domain::LimitWait>& waits) const override;
  [[nodiscard]] std::vector<domain::LimitWait> read_waits(std::string_view data) const override;
  [[nodiscard]] std::string write_verdict(const domain::VerdictRecord& verdict) const override;
  [[nodiscard]] std::optional<domain::VerdictRecord> read_verdict(std::string_view data) const override;
};

}  // namespace stint::wire
