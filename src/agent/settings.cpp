#include "agent/settings.hpp"

#include "agent/files.hpp"
#include "agent/quantity.hpp"
#include "agent/settings_keys.hpp"
#include "agent/settings_toml.hpp"
#include "agent/text.hpp"
#include "domain/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace stint::agent {
namespace {

using Path = std::vector<std::string>;

constexpr std::string_view kProjectFile = "stint.toml";
constexpr std::string_view kUserFile = "config.toml";
/// Variables that begin with STINT_ and are not settings.
constexpr std::array<std::string_view, 5> kOtherVariables{"STINT_RUN", "STINT_URL", "STINT_TOKEN", "STINT_JOBS",
                                                          "STINT_LOG"};

bool is_bare(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string joined(const Path& path, bool quotes) {
  std::string out;
  for (const std::string& segment : path) {
    if (!out.empty()) out += '.';
    out += quotes && !is_bare(segment) ? fmt::format("\"{}\"", segment) : segment;
  }
  return out;
}

/// Merges the layers, one over the other.
class Layers {
 public:
  explicit Layers(std::vector<Problem>& problems) : problems_(problems) {}

  void put_defaults() {
    for (const SettingKey& key : setting_keys()) {
      if (key.fallback.empty()) continue;
      Setting setting;
      for (std::string_view rest = key.pattern; !rest.empty();) {
        const std::size_t dot = std::min(rest.find('.'), rest.size());
        setting.path.emplace_back(rest.substr(0, dot));
        rest.remove_prefix(std::min(dot + 1, rest.size()));
      }
      setting.text = key.fallback;
      put(std::move(setting));
    }
  }

  void put_file(const SettingsText& file) {
    ProblemList problems(file.file);
    for (TomlValue& value : flatten_toml(file.text, problems)) put_value(std::move(value), file, problems);
    for (Problem& problem : problems.take()) problems_.push_back(std::move(problem));
  }

  void put_environment(const EnvironmentVariables& environment) {
    ProblemList problems("environment");
    std::vector<std::string> known(kOtherVariables.begin(), kOtherVariables.end());
    for (const SettingKey& key : setting_keys()) {
      const std::string name = setting_variable(key);
      if (name.empty()) continue;
      known.push_back(name);
      const auto found = environment.find(name);
      if (found == environment.end() || found->second.empty()) continue;
      put_text(std::string(key.pattern), key, found->second, {OriginKind::environment, name, 0}, name, problems);
    }
    for (const auto& [name, value] : environment) {
      if (!name.starts_with("STINT_") || contains(known, name)) continue;
      // Other programs may use such variables; only a near miss is reported.
      if (std::string suggestion = did_you_mean(name, known); !suggestion.empty()) {
        problems.warning({}, name, "no such setting", std::move(suggestion));
      }
    }
    for (Problem& problem : problems.take()) problems_.push_back(std::move(problem));
  }

  void put_flag(const FlagSetting& flag) {
    ProblemList problems("command line");
    const auto keys = setting_keys();
    const auto key = std::ranges::find(keys, flag.key, &SettingKey::pattern);
    if (key == keys.end()) {
      problems.error({}, flag.flag, fmt::format("there is no setting '{}'", excerpt(flag.key)));
    } else {
      put_text(flag.key, *key, flag.text, {OriginKind::flag, flag.flag, 0}, flag.flag, problems);
    }
    for (Problem& problem : problems.take()) problems_.push_back(std::move(problem));
  }

  std::vector<Setting> take() {
    std::vector<Setting> out;
    for (auto& [path, setting] : settings_) out.push_back(std::move(setting));
    return out;
  }

 private:
  void put(Setting setting) {
    Path path = setting.path;
    settings_.insert_or_assign(std::move(path), std::move(setting));
  }

  void put_text(const std::string& dotted, const SettingKey& key, std::string_view given, Origin origin,
                const std::string& field, ProblemList& problems) {
    Result<std::string> text = check_setting(key.type, given);
    if (!text) return problems.error({}, field, std::string(text.error().what()));
    Setting setting;
    for (std::string_view rest = dotted; !rest.empty();) {
      const std::size_t dot = std::min(rest.find('.'), rest.size());
      setting.path.emplace_back(rest.substr(0, dot));
      rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
    setting.text = *std::move(text);
    setting.origin = std::move(origin);
    put(std::move(setting));
  }

  void put_value(TomlValue value, const SettingsText& file, ProblemList& problems) {
    const std::string shown = joined(value.path, true);
    if (value.path.size() == 2 && value.path[0] == "limits") value.path.emplace_back("capacity");  // gpu = 2
    const SettingKey* const key = find_setting_key(value.path);
    if (key == nullptr) return report_unknown(value, shown, problems);
    if (value.path[0] == "limits" && !domain::is_limit_name(value.path[1])) {
      return problems.error(value.key_place, shown,
                            "cannot be a limit's name: letters, digits, '_', '-', '.' and ':' only");
    }
    if (const std::string meant = value.path[0] == "limits" ? domain::limit_of_file_name(value.path[1]) : std::string();
        !meant.empty()) {
      return problems.error(value.key_place, shown, fmt::format("the limit is called \"{}\"", meant));
    }
    if (!fits(key->type, value)) {
      return problems.error(value.place, shown,
                            fmt::format("expected {}, found {}", expectation(key->type), value.found));
    }
    Setting setting;
    setting.path = value.path;
    setting.list = value.list;
    setting.origin = {file.kind, file.file, value.place.line};
    if (key->type != SettingType::command) {
      Result<std::string> text = check_setting(key->type, value.text);
      if (!text) return problems.error(value.place, shown, std::string(text.error().what()));
      setting.text = *std::move(text);
      if (key->type == SettingType::store && setting.shown() != setting.text) {
        problems.warning(value.place, shown, "the file contains a password", "put the address into STINT_STORE");
      }
    } else if (value.list.empty() || value.list[0].empty()) {
      return problems.error(value.place, shown, "names no program");
    }
    put(std::move(setting));
  }

  static bool fits(SettingType type, const TomlValue& value) {
    using Kind = TomlValue::Kind;
    switch (type) {
      case SettingType::command: return value.kind == Kind::list;
      case SettingType::flag: return value.kind == Kind::flag;
      case SettingType::number: return value.kind == Kind::integer;
      case SettingType::capacity:
        return value.kind == Kind::integer || (value.kind == Kind::text && value.text == "auto");
      case SettingType::ratio: return value.kind == Kind::integer || value.kind == Kind::real;
      case SettingType::cost:
        return value.kind == Kind::integer || value.kind == Kind::real || value.kind == Kind::text;
      case SettingType::count: return value.kind == Kind::integer || value.kind == Kind::text;
      default: return value.kind == Kind::text;
    }
  }

  static void report_unknown(const TomlValue& value, const std::string& shown, ProblemList& problems) {
    for (std::size_t depth = 0; depth < value.path.size(); ++depth) {
      const std::span<const std::string> before(value.path.data(), depth);
      const std::vector<std::string_view> words = setting_words_after(before);
      if (contains(words, "*") || contains(words, value.path[depth])) continue;
      if (words.empty()) break;  // a member of something that is not a table
      // A near miss of a known key must not be ignored: a limit or a budget would silently not apply.
      std::string suggestion = did_you_mean(value.path[depth], words);
      if (suggestion.empty()) suggestion = did_you_mean(snake_case(value.path[depth]), words);
      if (!suggestion.empty()) return problems.error(value.key_place, shown, "unknown key", std::move(suggestion));
      return problems.warning(value.key_place, shown, "unknown key, ignored");
    }
    problems.warning(value.key_place, shown, "unknown key, ignored");
  }

  std::vector<Problem>& problems_;
  std::map<Path, Setting> settings_;
};

/// Converts the checked texts to values. An absent value stays zero.
class Assembly {
 public:
  explicit Assembly(Settings& out) : out_(out) {
    for (const Setting& setting : out.all) {
      if (setting.path.size() >= 3) put_named(setting);
    }
    out_.default_agent = text("default_agent");
    out_.entry_agent = text("entry_agent");
    if (const domain::DriverDescriptor* const driver = domain::find_driver(text("driver"))) out_.driver = driver;
    out_.store = text("store");
    out_.limits_dir = text("limits_dir");
    put_pool();
    put_budget();
    if (const Setting* const gate = out_.find("land.gate")) out_.gate = gate->list;
    out_.retention = duration("retention.runs");
  }

 private:
  std::string text(std::string_view key) const {
    const Setting* const setting = out_.find(key);
    return setting == nullptr ? std::string() : setting->text;
  }
  Duration duration(std::string_view key) const { return parse_duration(text(key)).value_or(Duration::zero()); }
  std::uint32_t number(std::string_view key) const {
    return static_cast<std::uint32_t>(parse_integer(text(key), 0, INT32_MAX).value_or(0));
  }
  double ratio(std::string_view key) const {
    const std::string shown = text(key);
    double value = 0;
    std::from_chars(shown.data(), shown.data() + shown.size(), value);
    return value;
  }

  void put_pool() {
    out_.pool.workers = number("pool.workers");
    out_.pool.queue = number("pool.queue");
    out_.pool.min = number("pool.min");
    out_.pool.max = number("pool.max");
    out_.pool.autoscale = text("pool.autoscale") == "true";
    out_.pool.check = duration("pool.check");
    out_.pool.stale_after = duration("pool.stale_after");
    out_.pool.idle_beat = duration("pool.idle_beat");
    out_.pool.drain = duration("pool.drain");
    out_.pool.up = ratio("pool.up");
    out_.pool.up_queue = ratio("pool.up_queue");
    out_.pool.down = ratio("pool.down");
  }

  void put_budget() {
    const auto optional = [&](std::string_view key, auto parse) -> std::optional<std::int64_t> {
      const Setting* const setting = out_.find(key);
      return setting == nullptr ? std::nullopt : std::optional(parse(setting->text).value_or(0));
    };
    if (out_.find("budget.time") != nullptr) out_.budget.time = duration("budget.time");
    out_.budget.attempts = optional("budget.attempts", parse_count);
    out_.budget.tokens = optional("budget.tokens", parse_count);
    out_.budget.cost_micros = optional("budget.cost", parse_cost);
    out_.cost_micros_per_day = optional("budget.cost_per_day", parse_cost);
  }

  void put_named(const Setting& setting) {
    const std::string& name = setting.path[1];
    const std::string& last = setting.path.back();
    if (setting.path[0] == "limits") {
      LimitSetting& limit = out_.limits[name];
      if (last == "capacity") {
        limit.origin = setting.origin;
        if (const auto value = parse_integer(setting.text, 1, domain::kPermitsMax))
          limit.capacity = static_cast<std::uint32_t>(*value);
      } else {
        limit.reach = setting.text == "process" ? Reach::process
                      : setting.text == "host"  ? Reach::host
                                                : Reach::cluster;
      }
    } else if (setting.path[0] == "accounts") {
      (last == "key_env" ? out_.accounts[name].key_env : out_.accounts[name].key_file) = setting.text;
    } else if (setting.path[0] == "models") {
      ModelSetting& model = out_.models[name];
      if (last == "endpoint") model.endpoint = setting.text;
      if (last == "account") model.account = setting.text;
      const std::int64_t price = parse_cost(setting.text).value_or(0);
      if (last == "input") model.price.input = price;
      if (last == "cache_read") model.price.cache_read = price;
      if (last == "cache_write") model.price.cache_write = price;
      if (last == "output") model.price.output = price;
    }
  }

  Settings& out_;
};

/// Checks values that depend on each other.
void check_together(Settings& settings, std::vector<Problem>& problems) {
  const auto report = [&](const Setting* setting, std::string message) {
    if (setting == nullptr) return;
    problems.push_back({Severity::error, setting->origin.where.empty() ? "settings" : setting->origin.where,
                        setting->origin.line, 0, setting->key(), std::move(message), ""});
  };
  if (settings.pool.min > settings.pool.max) {
    report(settings.find("pool.min"),
           fmt::format("{} is more than pool.max, {}", settings.pool.min, settings.pool.max));
  }
  if (settings.pool.down >= settings.pool.up) report(settings.find("pool.down"), "must be less than pool.up");
  // Two names, one file: the file name has '.' for ':'.
  std::map<std::string, std::string> by_file;
  for (const auto& [name, limit] : settings.limits) {
    std::string file = name;
    std::ranges::replace(file, ':', '.');
    const auto [known, first] = by_file.emplace(file, name);
    if (first) continue;
    report(settings.find(joined({"limits", name, "capacity"}, true)),
           fmt::format("is the same limit as \"{}\"; give it one name", known->second));
  }
  // A reach without a capacity does not define a limit.
  for (auto limit = settings.limits.begin(); limit != settings.limits.end();) {
    if (limit->second.origin.kind != OriginKind::fallback) {
      ++limit;
      continue;
    }
    report(settings.find(joined({"limits", limit->first, "reach"}, true)), "this limit has no capacity");
    limit = settings.limits.erase(limit);
  }
}

}  // namespace

std::string_view to_string(OriginKind kind) noexcept {
  switch (kind) {
    case OriginKind::fallback: return "default";
    case OriginKind::project: return "project";
    case OriginKind::user: return "user";
    case OriginKind::environment: return "environment";
    case OriginKind::flag: return "flag";
    case OriginKind::resized: return "resized";
  }
  return "unknown";
}

std::string_view to_string(Reach reach) noexcept {
  switch (reach) {
    case Reach::process: return "process";
    case Reach::host: return "host";
    case Reach::cluster: return "cluster";
  }
  return "unknown";
}

std::string describe(const Origin& origin) {
  if (origin.kind == OriginKind::fallback) return "default";
  return origin.line > 0 ? fmt::format("{}:{}", origin.where, origin.line) : origin.where;
}

std::string Setting::key() const { return joined(path, true); }

std::string Setting::shown() const {
  if (!list.empty()) {
    std::string out;
    for (const std::string& word : list) out += (out.empty() ? "" : " ") + word;
    return out;
  }
  return without_password(text);
}

std::string without_password(std::string address) {
  const std::vector<domain::TextSpan> passwords = domain::passwords_in(address);
  for (auto span = passwords.rbegin(); span != passwords.rend(); ++span) {
    address.replace(span->from, span->size, kPasswordMask);
  }
  return address;
}

const Setting* Settings::find(std::string_view key) const {
  for (const bool quotes : {true, false}) {
    for (const Setting& setting : all) {
      if (joined(setting.path, quotes) == key) return &setting;
    }
  }
  return nullptr;
}

LoadedSettings read_settings(const SettingsSources& sources) {
  LoadedSettings out;
  Layers layers(out.problems);
  layers.put_defaults();
  for (const SettingsText& file : sources.files) layers.put_file(file);
  layers.put_environment(sources.environment);
  for (const FlagSetting& flag : sources.flags) layers.put_flag(flag);
  out.settings.all = layers.take();
  Assembly assemble(out.settings);
  check_together(out.settings, out.problems);
  return out;
}

LoadedSettings blocking_load_settings(const std::filesystem::path& root, const EnvironmentVariables& environment,
                                      std::span<const FlagSetting> flags) {
  SettingsSources sources;
  sources.environment = environment;
  sources.flags.assign(flags.begin(), flags.end());
  std::vector<Problem> problems;
  const auto blocking_add = [&](const std::filesystem::path& path, OriginKind kind, const std::string& shown) {
    auto text = kind == OriginKind::project ? blocking_read_file_within(root, path, kSettingsFileMax)
                                            : blocking_read_file(path, kSettingsFileMax);
    if (text) {
      sources.files.push_back({kind, shown, *std::move(text)});
    } else if (text.error() != Errc::unavailable) {
      problems.push_back({Severity::error, shown, 0, 0, "", std::string(text.error().what()), ""});
    }
  };
  blocking_add(root / kProjectFile, OriginKind::project, std::string(kProjectFile));
  if (const auto places = user_places(environment)) {
    blocking_add(places->config / kUserFile, OriginKind::user, (places->config / kUserFile).string());
  }
  LoadedSettings out = read_settings(sources);
  out.problems.insert(out.problems.begin(), problems.begin(), problems.end());
  return out;
}

std::uint32_t automatic_capacity(std::uint64_t memory_available) noexcept {
  constexpr std::uint64_t kMemoryPerRun = std::uint64_t{1} << 30;
  constexpr std::uint64_t kMost = 16;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(memory_available / kMemoryPerRun, 1, kMost));
}

}  // namespace stint::agent
