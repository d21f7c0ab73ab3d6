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
  [[nodiscard]] std::string write_span(const domain::Span& span) const override;
  /// Reads what write_span wrote; none if the data is something else.
  [[nodiscard]] static std::optional<domain::Span> read_span(std::string_view data);
};

}  // namespace stint::wire
