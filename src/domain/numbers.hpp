/// The numbers of runs, nodes, agents and fences, each kind a type of its own. The store has them as 64-bit integers
/// and calls take several: as plain integers, a swapped pair would compile and show only as a stale or missing run.
/// Convert with `value` where a number leaves C++: SQL, JSON, environment variables, texts.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <optional>

namespace stint::domain {

/// `Tag` is never defined. 0 means none: stores count from 1.
template <class Tag>
struct Number {
  std::int64_t value = 0;

  constexpr Number() noexcept = default;
  constexpr explicit Number(std::int64_t number) noexcept : value(number) {}

  friend constexpr auto operator<=>(Number, Number) noexcept = default;
  /// So that a failed test prints the value.
  template <class Char, class Traits>
  friend std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& out, Number number) {
    return out << number.value;
  }
};

template <class Tag>
[[nodiscard]] constexpr std::optional<std::int64_t> value_of(std::optional<Number<Tag>> number) noexcept {
  return number ? std::optional(number->value) : std::nullopt;
}
template <class Kind>
[[nodiscard]] constexpr std::optional<Kind> number_of(std::optional<std::int64_t> value) noexcept {
  return value ? std::optional(Kind{*value}) : std::nullopt;
}

using RunNumber = Number<struct RunNumberTag>;  ///< internal to a store; the public name is the id
using NodeNumber = Number<struct NodeNumberTag>;
using AgentNumber = Number<struct AgentNumberTag>;  ///< internal to a store as well
using Fence = Number<struct FenceTag>;              ///< of one run: grows with each claim

}  // namespace stint::domain
