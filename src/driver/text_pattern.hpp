/// The patterns of JSON Schema: regular expressions as in JavaScript, without what needs backtracking. A match takes
/// time linear in the text, whatever the pattern: patterns come from MCP servers and texts from models.
///
/// Has: alternatives, groups, classes, `* + ? {n,m}` (also lazy), `^ $ \b \B`, `\d \w \s` and their opposites, escapes
/// of characters. Refuses lookaround, back references and `\p{…}`: compile() says which, and where. Works on code
/// points; finds a match anywhere in the text, as JSON Schema wants it. Pure.
#pragma once

#include "stint/error.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace stint::driver {

class TextPattern {
 public:
  static constexpr std::size_t kPatternBytesMax = 2000;
  static constexpr int kDepthMax = 50;             ///< nested groups
  static constexpr std::size_t kStatesMax = 4000;  ///< with all repetitions written out; also the cost of one character

  /// Fails with `Errc::invalid`.
  [[nodiscard]] static Result<TextPattern> compile(std::string_view pattern);
  /// Whether a part of the text matches.
  [[nodiscard]] bool is_found_in(std::string_view text) const;
  /// The number of states: the cost of a match per character.
  [[nodiscard]] std::size_t states() const noexcept { return states_.size(); }

 private:
  friend class PatternParser;
  friend class PatternCompiler;
  friend class PatternSearch;
  struct Range {
    char32_t first, last;
  };
  using Characters = std::vector<Range>;  // sorted, apart from each other
  enum class Op : std::uint8_t { characters, fork, jump, begin, end, boundary, no_boundary, found };
  struct State {
    Op op;
    std::uint32_t next;   // of fork and jump; of characters: the index of the set
    std::uint32_t other;  // of fork
  };

  std::vector<State> states_;
  std::vector<Characters> sets_;
};

}  // namespace stint::driver
