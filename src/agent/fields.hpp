/// Reads the members of a YAML mapping by name and type. A value of the wrong type is reported with the expected and
/// the found type, and then counts as absent. `finish` reports unknown keys: a near miss of a known key is an error
/// (`max_concurency: 1` must not run without a limit), any other unknown key a warning.
#pragma once

#include "agent/yaml.hpp"
#include "stint/error.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

class Fields {
 public:
  /// `where` prefixes the names in messages: "budget" makes "budget.time". `any_case` also finds `maxTurns` and
  /// `max-turns` for `max_turns`. The node must outlive this.
  Fields(const YamlNode& map, std::string where, ProblemList& problems, bool any_case = false);

  /// Nothing if it is absent.
  [[nodiscard]] const YamlNode* find(std::string_view key);
  [[nodiscard]] std::optional<std::string> text(std::string_view key);
  [[nodiscard]] std::optional<bool> flag(std::string_view key);
  /// `hint` is added when the number is out of range.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most,
                                                    std::string_view hint = {});
  [[nodiscard]] std::optional<Duration> duration(std::string_view key);   ///< more than 0
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view key);  ///< at least 1
  [[nodiscard]] std::optional<std::int64_t> bytes(std::string_view key);  ///< at least 1M
  [[nodiscard]] std::optional<std::int64_t> cost(std::string_view key);   ///< more than 0
  /// A list of strings.
  [[nodiscard]] std::optional<std::vector<std::string>> texts(std::string_view key);
  /// One of `words`; its index.
  [[nodiscard]] std::optional<std::size_t> choice(std::string_view key, std::span<const std::string_view> words);
  /// The members of a list, each of which must be a mapping; a mapping itself counts as one member.
  [[nodiscard]] const YamlNode* list(std::string_view key);
  [[nodiscard]] const YamlNode* map(std::string_view key);

  void expected(const YamlNode& node, std::string_view key, std::string_view what, std::string suggestion = {});
  /// Declares keys that are allowed here and ignored.
  void ignore(std::span<const std::string_view> keys);
  void finish();

  [[nodiscard]] std::string path(std::string_view key) const;
  [[nodiscard]] ProblemList& problems() noexcept { return problems_; }

 private:
  template <class Parse>
  std::optional<std::int64_t> amount(std::string_view key, std::string_view expectation, Parse parse);

  const YamlNode& map_;
  const std::string where_;
  ProblemList& problems_;
  const bool any_case_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> ignored_;
};

}  // namespace stint::agent
