/// Selects the reply to a request: rules in order, each with what it matches and what it answers; then the prompt's own
/// `@provider:` line for this turn, which wins.
///
/// A script is TOML or JSON (text that begins with `{`), the same names in both. Rules and lines with `times` are
/// counted, so a script has state; it is used on the server's thread only. Everything is bounded.
#pragma once

#include "provider/reply.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stint::provider {

/// The fields of a request that rules match.
struct Question {
  std::string_view protocol;
  std::string_view model;
  std::string_view prompt;  ///< the last user message
  std::uint32_t turn = 0;   ///< answers given since: 0, then 1 after the first tool call, …
};

class Script {
 public:
  static constexpr std::size_t kBytesMax = 4 << 20;
  static constexpr std::size_t kRulesMax = 1000;
  static constexpr std::size_t kCountersMax = 4096;  // of prompt lines with `times`; the oldest is dropped

  Script() = default;
  /// `Errc::invalid` with the rule's number, the key and what to write instead.
  [[nodiscard]] static Result<Script> parse(std::string_view text);

  /// `Errc::invalid` if the prompt's own line is malformed.
  [[nodiscard]] Result<Reply> reply_to(const Question& question);

 private:
  struct Rule {
    std::string match, model, protocol;
    std::optional<std::uint32_t> turn;
    Reply reply;
    std::uint32_t used = 0;

    [[nodiscard]] bool fits(const Question& question) const;
  };
  Result<> apply_line(Reply& reply, const Question& question);
  [[nodiscard]] bool strikes(std::string_view line, std::uint32_t times);

  Reply fallback_;
  std::vector<Rule> rules_;
  std::map<std::string, std::uint32_t, std::less<>> counters_;  // directive line → requests seen
  std::vector<std::string> counter_order_;
};

}  // namespace stint::provider
