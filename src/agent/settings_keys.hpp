/// The keys of the settings: one table for reading, checking, suggestions, defaults, variables and
/// `stint config`.
#pragma once

#include "stint/error.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

enum class SettingType : std::uint8_t {
  text,
  agent,
  driver,
  store,
  capacity,
  reach,
  count,
  number,
  duration,
  cost,
  ratio,
  flag,
  command
};

struct SettingKey {
  std::string_view pattern;  ///< segments with dots; `*` is any name
  SettingType type = SettingType::text;
  std::string_view fallback;  ///< empty: none
};

[[nodiscard]] std::span<const SettingKey> setting_keys() noexcept;
/// Nothing if there is no such key.
[[nodiscard]] const SettingKey* find_setting_key(std::span<const std::string> path) noexcept;
/// The words that may follow `path`; "*" if any may.
[[nodiscard]] std::vector<std::string_view> setting_words_after(std::span<const std::string> path);
/// `pool.workers` → `STINT_POOL_WORKERS`; nothing for a key with a `*`.
[[nodiscard]] std::string setting_variable(const SettingKey& key);

/// The normalized text of a value, or an error. A command has no text.
[[nodiscard]] Result<std::string> check_setting(SettingType type, std::string_view text);
/// "a duration such as 20m"
[[nodiscard]] std::string_view expectation(SettingType type) noexcept;

}  // namespace stint::agent
