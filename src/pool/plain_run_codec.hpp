/// For tests: a codec without JSON. It keeps the token budget of an input, and usage and conversation of a memo.
#pragma once

#include "pool/run_codec.hpp"

#include <sstream>
#include <string>

namespace stint::pool {

class PlainRunCodec final : public RunCodec {
 public:
  [[nodiscard]] std::string write(const domain::RunInput& input) const override {
    return std::to_string(input.budget.tokens.value_or(0));
  }
  [[nodiscard]] Result<domain::RunInput> read_input(std::string_view text) const override {
    if (text == "garbled") return fail(Errc::invalid, "the input can't be read");
    domain::RunInput input;
    const std::int64_t tokens = text.empty() ? 0 : std::stoll(std::string(text));
    if (tokens > 0) input.budget.tokens = tokens;
    return input;
  }
  [[nodiscard]] std::string write(const domain::RunMemo& memo) const override {
    return std::to_string(memo.usage.out) + (memo.resumes ? " resumes " : " anew ") + memo.conversation;
  }
  [[nodiscard]] Result<domain::RunMemo> read_memo(std::string_view text) const override {
    domain::RunMemo memo;
    std::string how;
    std::istringstream words{std::string(text)};
    words >> memo.usage.out >> how >> memo.conversation;
    memo.resumes = how == "resumes";
    return memo;
  }
  [[nodiscard]] std::string write_note(std::string_view text) const override { return std::string(text); }
  [[nodiscard]] std::string read_note(std::string_view data) const override { return std::string(data); }
  [[nodiscard]] std::string write_span(const domain::Span& span) const override {
    return std::string(to_string(span.kind)) + " " + span.name + " " + std::to_string(span.usage.tokens());
  }
};

}  // namespace stint::pool
