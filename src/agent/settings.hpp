/// The settings, from five layers: defaults, the project's `stint.toml`, the user's `config.toml`, `STINT_…` in the
/// environment, flags. Later wins, value by value, and every value has its origin. A wrong value is reported
/// and ignored: the layer below it applies.
///
/// `Settings` is what the program uses; `all` is the same as text, for `stint config`.
#pragma once

#include "agent/problem.hpp"
#include "agent/project.hpp"
#include "domain/agent.hpp"
#include "domain/price.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

inline constexpr std::size_t kSettingsFileMax = 256 * 1024;  ///< bytes

/// `resized`: set with `stint limits NAME=N`; it overrides all others until it is reset.
enum class OriginKind : std::uint8_t { fallback, project, user, environment, flag, resized };
[[nodiscard]] std::string_view to_string(OriginKind kind) noexcept;

struct Origin {
  OriginKind kind = OriginKind::fallback;
  std::string where;  ///< the file, the variable or the flag
  int line = 0;

  friend bool operator==(const Origin&, const Origin&) = default;
};
/// "stint.toml:3", "STINT_STORE", "--store", "default"
[[nodiscard]] std::string describe(const Origin& origin);

/// One value as it is shown: `limits."model:opus".capacity = 2`.
struct Setting {
  std::vector<std::string> path;
  std::string text;               ///< in the form in which it can be written again
  std::vector<std::string> list;  ///< of a command
  Origin origin;

  [[nodiscard]] std::string key() const;    ///< as TOML writes it
  [[nodiscard]] std::string shown() const;  ///< a password in an address is masked
};

inline constexpr std::string_view kPasswordMask = "***";
/// An address that may be shown, or given to a run: its password is replaced by `kPasswordMask`.
[[nodiscard]] std::string without_password(std::string address);

enum class Reach : std::uint8_t { process, host, cluster };
[[nodiscard]] std::string_view to_string(Reach reach) noexcept;

struct LimitSetting {
  std::optional<std::uint32_t> capacity;  ///< absent: "auto", see automatic_capacity
  std::optional<Reach> reach;             ///< absent: where the store is
  Origin origin;                          ///< of the capacity
};
struct AccountSetting {
  std::string key_env;
  std::string key_file;
};
struct ModelSetting {
  std::string endpoint;
  std::string account;
  Price price;
};
struct PoolSettings {
  std::uint32_t workers = 0, queue = 0, min = 0, max = 0;
  bool autoscale = true;
  Duration check{}, stale_after{}, idle_beat{}, drain{};
  double up = 0, up_queue = 0, down = 0;
};

struct Settings {
  std::string default_agent, entry_agent;
  const domain::DriverDescriptor* driver = &domain::kDefaultDriver;
  std::string store;       ///< sqlite, memory, or an address postgres://…
  std::string limits_dir;  ///< empty: the user's
  std::map<std::string, LimitSetting, std::less<>> limits;
  PoolSettings pool;
  domain::BudgetSpec budget;
  std::optional<std::int64_t> cost_micros_per_day;
  std::map<std::string, AccountSetting, std::less<>> accounts;
  std::map<std::string, ModelSetting, std::less<>> models;
  std::vector<std::string> gate;
  Duration retention{};
  std::vector<Setting> all;  ///< by key

  /// Finds a setting by its key as TOML writes it; quotes may be left out.
  [[nodiscard]] const Setting* find(std::string_view key) const;
};

struct SettingsText {
  OriginKind kind = OriginKind::project;
  std::string file;  ///< the name to use in messages
  std::string text;
};
struct FlagSetting {
  std::string key;
  std::string text;
  std::string flag;  ///< as it was written, for messages
};
struct SettingsSources {
  std::vector<SettingsText> files;  ///< the project's, then the user's
  EnvironmentVariables environment;
  std::vector<FlagSetting> flags;
};
struct LoadedSettings {
  Settings settings;
  std::vector<Problem> problems;
};
[[nodiscard]] LoadedSettings read_settings(const SettingsSources& sources);

/// Reads both files, if they exist, and then the rest.
[[nodiscard]] LoadedSettings blocking_load_settings(const std::filesystem::path& root,
                                                    const EnvironmentVariables& environment,
                                                    std::span<const FlagSetting> flags = {});

/// The value of `host = "auto"`: one run for each GiB that is free, from 1 to 16.
[[nodiscard]] std::uint32_t automatic_capacity(std::uint64_t memory_available) noexcept;

}  // namespace stint::agent
