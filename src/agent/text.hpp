/// Pure helpers for text that agent files and settings share: spelling, UTF-8, line ends.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

/// The candidate that `word` probably stands for: fewest edits (a swap of neighbours counts one), at most a third
/// of its length. The first of equals.
[[nodiscard]] std::optional<std::string> closest(std::string_view word, std::span<const std::string_view> candidates);
[[nodiscard]] std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);
/// "did you mean 'x'?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// Edits that turn one into the other: insert, delete, replace, swap neighbours. Looks at the first 64 bytes.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// `maxTurns`, `max-turns` and `MaxTurns` are `max_turns`.
[[nodiscard]] std::string snake_case(std::string_view key);

/// The position of the first byte that is not UTF-8; nothing if all are. Overlong forms and surrogates are not UTF-8.
[[nodiscard]] std::optional<std::size_t> utf8_error(std::string_view text) noexcept;

/// "a, b or c"
[[nodiscard]] std::string one_of(std::span<const std::string_view> words);

/// At most `bytes_max` bytes for a message, cut between characters, line breaks as spaces, "…" if something was cut.
[[nodiscard]] std::string excerpt(std::string_view text, std::size_t bytes_max = 40);

/// Splits at commas outside parentheses: `Read, Bash(git log:*, git diff:*)` is two.
[[nodiscard]] std::vector<std::string> split_commas(std::string_view text);

/// std::ranges::contains, which this standard library lacks.
template <class Range, class Value, class Projection = std::identity>
[[nodiscard]] bool contains(const Range& range, const Value& value, Projection projection = {}) {
  return std::ranges::find(range, value, projection) != std::ranges::end(range);
}

[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;
[[nodiscard]] int line_of(std::string_view text, std::size_t position) noexcept;  ///< from 1

}  // namespace stint::agent
