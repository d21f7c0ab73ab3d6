#include "agent/settings_keys.hpp"

#include "agent/quantity.hpp"
#include "agent/text.hpp"
#include "domain/agent.hpp"
#include "domain/driver_descriptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace stint::agent {
namespace {

using enum SettingType;

constexpr std::array kKeys{
    SettingKey{"default_agent", agent, "assistant"},
    SettingKey{"entry_agent", agent, "dispatch"},
    SettingKey{"driver", driver, domain::kDefaultDriver.name},
    SettingKey{"store", store, "sqlite"},
    SettingKey{"limits_dir", text, ""},
    SettingKey{"limits.*.capacity", capacity, ""},
    SettingKey{"limits.*.reach", reach, ""},
    SettingKey{"pool.workers", number, "10"},
    SettingKey{"pool.queue", number, "200"},
    SettingKey{"pool.autoscale", flag, "true"},
    SettingKey{"pool.min", number, "2"},
    SettingKey{"pool.max", number, "50"},
    SettingKey{"pool.check", duration, "10s"},
    SettingKey{"pool.up", ratio, "0.8"},
    SettingKey{"pool.up_queue", ratio, "0.5"},
    SettingKey{"pool.down", ratio, "0.3"},
    SettingKey{"pool.stale_after", duration, "2m"},
    SettingKey{"pool.idle_beat", duration, "1s"},
    SettingKey{"pool.drain", duration, "30s"},
    SettingKey{"budget.time", duration, "1h"},
    SettingKey{"budget.attempts", count, "3"},
    SettingKey{"budget.tokens", count, ""},
    SettingKey{"budget.cost", cost, ""},
    SettingKey{"budget.cost_per_day", cost, ""},
    SettingKey{"accounts.*.key_env", text, ""},
    SettingKey{"accounts.*.key_file", text, ""},
    SettingKey{"models.*.endpoint", text, ""},
    SettingKey{"models.*.account", text, ""},
    SettingKey{"models.*.price.input", cost, ""},
    SettingKey{"models.*.price.cache_read", cost, ""},
    SettingKey{"models.*.price.cache_write", cost, ""},
    SettingKey{"models.*.price.output", cost, ""},
    SettingKey{"land.gate", command, ""},
    SettingKey{"retention.runs", duration, "30d"},
};
constexpr std::array<std::string_view, 3> kReachWords{"process", "host", "cluster"};
constexpr std::array<std::string_view, 3> kStoreWords{"sqlite", "memory", "postgres"};
constexpr std::int64_t kNumberMax = 100'000;  // workers, places in the queue

std::vector<std::string_view> segments(std::string_view pattern) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t dot = pattern.find('.');
    out.push_back(pattern.substr(0, dot));
    if (dot == std::string_view::npos) return out;
    pattern.remove_prefix(dot + 1);
  }
}

bool begins(const std::vector<std::string_view>& pattern, std::span<const std::string> path) {
  if (path.size() > pattern.size()) return false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (pattern[i] != "*" && pattern[i] != path[i]) return false;
  }
  return true;
}

Result<std::string> word(std::string_view given, std::span<const std::string_view> words) {
  if (contains(words, given)) return std::string(given);
  const std::string suggestion = did_you_mean(given, words);
  return fail(Errc::invalid, fmt::format("expected {}, found '{}'{}", one_of(words), excerpt(given),
                                         suggestion.empty() ? "" : "; " + suggestion));
}

Result<std::string> more_than_zero(Result<std::int64_t> value, std::string shown) {
  if (!value) return std::unexpected(std::move(value).error());
  if (*value <= 0) return fail(Errc::invalid, "must be more than 0");
  return shown;
}

Result<std::string> check_duration(std::string_view given) {
  STINT_TRY(const Duration value, parse_duration(given));
  if (value <= Duration::zero()) return fail(Errc::invalid, "must be more than 0");
  return format_duration(value);
}

Result<std::string> check_ratio(std::string_view given) {
  double value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (error != std::errc() || end != given.data() + given.size() || !(value >= 0 && value <= 1)) {
    return fail(Errc::invalid, fmt::format("expected a number from 0 to 1, found '{}'", excerpt(given)));
  }
  return std::string(given);
}

}  // namespace

std::span<const SettingKey> setting_keys() noexcept { return kKeys; }

const SettingKey* find_setting_key(std::span<const std::string> path) noexcept {
  for (const SettingKey& key : kKeys) {
    const auto pattern = segments(key.pattern);
    if (pattern.size() == path.size() && begins(pattern, path)) return &key;
  }
  return nullptr;
}

std::vector<std::string_view> setting_words_after(std::span<const std::string> path) {
  std::vector<std::string_view> out;
  for (const SettingKey& key : kKeys) {
    const auto pattern = segments(key.pattern);
    if (pattern.size() <= path.size() || !begins(pattern, path)) continue;
    if (!contains(out, pattern[path.size()])) out.push_back(pattern[path.size()]);
  }
  return out;
}

std::string setting_variable(const SettingKey& key) {
  if (key.pattern.contains('*') || key.type == command) return {};
  std::string out = "STINT_";
  for (const char c : key.pattern) out += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

std::string_view expectation(SettingType type) noexcept {
  switch (type) {
    case text: return "text";
    case agent: return "an agent's name";
    case driver: return "a driver's name";
    case store: return "\"sqlite\", \"memory\" or an address postgres://…";
    case capacity: return "a whole number, \"auto\" or {capacity = 2, reach = \"host\"}";
    case reach: return "\"process\", \"host\" or \"cluster\"";
    case count: return "a whole number such as 3 or \"400k\"";
    case number: return "a whole number";
    case duration: return "a duration such as \"20m\"";
    case cost: return "a cost such as 2.50";
    case ratio: return "a number from 0 to 1";
    case flag: return "true or false";
    case command: return "a list of program and arguments";
  }
  return "something else";
}

Result<std::string> check_setting(SettingType type, std::string_view given) {
  switch (type) {
    case command:
    case text:
      if (given.empty()) return fail(Errc::invalid, "is empty");
      return std::string(given);
    case agent:
      if (!domain::is_agent_name(given))
        return fail(Errc::invalid, fmt::format("'{}' cannot be an agent's name", excerpt(given)));
      return std::string(given);
    case driver: return word(given, domain::kDriverNames);
    case store:
      if (given.starts_with("postgres://") || given.starts_with("postgresql://")) return std::string(given);
      return word(given, kStoreWords);
    case capacity: {
      if (given == "auto") return std::string(given);
      STINT_TRY(const std::int64_t value, parse_integer(given, 1, domain::kPermitsMax));
      return std::to_string(value);
    }
    case reach: return word(given, kReachWords);
    case count: return more_than_zero(parse_count(given), std::string(given));
    case number: {
      STINT_TRY(const std::int64_t value, parse_integer(given, 0, kNumberMax));
      return std::to_string(value);
    }
    case duration: return check_duration(given);
    case cost: {
      STINT_TRY(const std::int64_t value, parse_cost(given));
      return format_cost(value);
    }
    case ratio: return check_ratio(given);
    case flag:
      if (given == "true" || given == "false") return std::string(given);
      return fail(Errc::invalid, fmt::format("expected true or false, found '{}'", excerpt(given)));
  }
  return fail(Errc::invalid, "unknown type");
}

}  // namespace stint::agent
