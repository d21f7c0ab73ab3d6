// Every key of an agent file and of the settings, with every typo of one keystroke: none is ignored silently,
// and none leaves an agent or a project that runs without the setting.
#include "agent/agent_file.hpp"
#include "agent/settings.hpp"
#include "agent/settings_keys.hpp"
#include "agent/text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stint::agent {
namespace {

/// Every single typo: a letter left out, typed twice, replaced, or swapped with its neighbour; other cases.
std::set<std::string> slips(const std::string& key) {
  std::set<std::string> out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    out.insert(std::string(key).erase(i, 1));
    out.insert(std::string(key).insert(i, 1, key[i]));
    std::string replaced = key;
    replaced[i] = replaced[i] == 'q' ? 'x' : 'q';
    out.insert(replaced);
    if (i == 0) continue;
    std::string swapped = key;
    std::swap(swapped[i - 1], swapped[i]);
    out.insert(swapped);
  }
  std::string kebab = key;
  std::ranges::replace(kebab, '_', '-');
  out.insert(kebab);
  std::string camel;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '_') continue;
    const bool up = i > 0 && key[i - 1] == '_';
    camel += up ? static_cast<char>(key[i] - 'a' + 'A') : key[i];
  }
  out.insert(camel);
  out.erase("");
  out.erase(key);
  return out;
}

struct Level {
  std::string before, after;  // around the key and its value
  std::vector<std::string> keys;
};

const std::vector<Level>& agent_levels() {
  static const std::vector<Level> kLevels{
      {"", "", {"description", "name",        "args",   "max_concurrency", "limits",       "driver",  "model",
                "driver_args", "permissions", "budget", "retry",           "command",      "memory",  "home",
                "next",        "priority",    "title",  "tools",           "idle_timeout", "on_crash"}},
      {"budget: {", "}", {"time", "attempts", "tokens", "cost"}},
      {"retry: {", "}", {"base", "cap"}},
      {"args: [{", "}]", {"name", "description", "required", "default"}},
      {"limits: [{", "}]", {"name", "weight"}},
  };
  return kLevels;
}

AgentFile with_key(const Level& level, const std::string& key) {
  const std::string text = fmt::format("---\ndescription: d\n{}{}: 1{}\n---\nDo it.\n", level.before, key, level.after);
  return parse_agent(text, {"a.md", "a", domain::AgentFormat::stint});
}

bool says_unknown(std::span<const Problem> problems) {
  return std::ranges::any_of(problems, [](const Problem& each) { return each.message.starts_with("unknown key"); });
}

TEST(MisspeltKey, of_an_agent_file_is_an_error_that_names_the_key) {
  for (const Level& level : agent_levels()) {
    for (const std::string& key : level.keys) {
      EXPECT_FALSE(says_unknown(with_key(level, key).problems)) << level.before << key;
      for (const std::string& slip : slips(key)) {
        if (contains(level.keys, slip)) continue;
        const AgentFile file = with_key(level, slip);
        EXPECT_FALSE(file.agent) << level.before << slip;
        const auto named = std::ranges::find_if(file.problems, [](const Problem& each) {
          return each.severity == Severity::error && each.message == "unknown key" &&
                 each.suggestion.starts_with("did you mean '");
        });
        EXPECT_NE(named, file.problems.end()) << level.before << slip;
      }
    }
  }
}

TEST(MisspeltKey, of_the_settings_is_an_error) {
  for (const SettingKey& key : setting_keys()) {
    const std::string pattern(key.pattern);
    const std::size_t dot = pattern.rfind('.');
    const std::string last = dot == std::string::npos ? pattern : pattern.substr(dot + 1);
    std::string before = dot == std::string::npos ? "" : pattern.substr(0, dot + 1);
    if (const std::size_t star = before.find('*'); star != std::string::npos) before.replace(star, 1, "\"x\"");
    for (const std::string& slip : slips(last)) {
      const LoadedSettings loaded = read_settings(
          {.files = {{OriginKind::project, "stint.toml", before + slip + " = 1\n"}}, .environment = {}, .flags = {}});
      EXPECT_TRUE(has_errors(loaded.problems)) << before << slip;
    }
  }
}

TEST(MisspeltKey, of_a_foreign_file_is_an_error_if_stint_would_have_used_it) {
  const auto parsed = [](std::string_view line) {
    return parse_agent(fmt::format("---\nname: a\ndescription: d\n{}\n---\nx", line),
                       {"a.md", "a", domain::AgentFormat::claude});
  };
  EXPECT_FALSE(parsed("maxConcurency: 1").agent);
  EXPECT_FALSE(parsed("budget: {tim: 1h}").agent);
  EXPECT_FALSE(parsed("disalowedTools: Bash").agent);
  EXPECT_TRUE(parsed("colour: red").agent) << "a key of the other tool, without effect here";
  EXPECT_TRUE(parsed("permissions: full").agent) << "not a near miss of a key that such a file uses";
}

}  // namespace
}  // namespace stint::agent
