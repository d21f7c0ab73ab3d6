#include "wire/agents.hpp"

#include "agent/agent_file.hpp"
#include "wire/json.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace stint::wire {
namespace {

namespace json = boost::json;

TEST(AgentsJson, has_every_field_with_its_unit) {
  const auto file = agent::parse_agent(
      "---\ndescription: d\nargs: [{name: pr, required: true}, {name: x, default: \"1\"}]\nmax_concurrency: 2\nlimits: "
      "[gpu]\n"
      "budget: {time: 20m, cost: 2.50}\nretry: {base: 500ms}\n---\nDo {{pr}} {{x}}.",
      {"review.md", "review", domain::AgentFormat::stint});
  ASSERT_TRUE(file.agent);
  const std::vector agents{*file.agent};
  const json::value parsed = json::parse(agents_to_json(agents, {}));
  const json::object& agent = parsed.at("agents").at(0).as_object();
  EXPECT_EQ(agent.at("name"), "review");
  EXPECT_EQ(agent.at("usage"), "review PR [X]");
  EXPECT_EQ(agent.at("args").at(0).at("required"), true);
  EXPECT_EQ(agent.at("args").at(1).at("default"), "1");
  EXPECT_EQ(agent.at("max_concurrency"), 2);
  EXPECT_EQ(agent.at("limits").at(0).at("weight"), 1);
  EXPECT_EQ(agent.at("budget").at("time_ms"), 1'200'000);
  EXPECT_EQ(agent.at("budget").at("cost_micros"), 2'500'000);
  EXPECT_TRUE(agent.at("budget").at("tokens").is_null());
  EXPECT_TRUE(agent.at("driver").is_null());
  EXPECT_TRUE(agent.at("tool_names").is_null());  // all, which is not the same as none
  EXPECT_EQ(agent.at("retry").at("base_ms"), 500);
  EXPECT_TRUE(parsed.at("problems").as_array().empty());
}

TEST(AgentsJson, problems_omit_empty_fields) {
  const std::vector<agent::Problem> problems{{agent::Severity::error, "a.md", 3, 1, "model", "bad\x1b[2J\xff", ""},
                                             {agent::Severity::warning, "b.md", 0, 0, "", "m", "s"}};
  const std::string text = agents_to_json({}, problems);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  const json::value parsed = json::parse(text);
  EXPECT_EQ(parsed.at("problems").at(0).at("line"), 3);
  EXPECT_EQ(parsed.at("problems").at(0).at("message"), "bad\x1b[2J\xEF\xBF\xBD");
  EXPECT_FALSE(parsed.at("problems").at(1).as_object().contains("line"));
  EXPECT_EQ(parsed.at("problems").at(1).at("suggestion"), "s");
}

TEST(SettingsJson, masks_passwords_and_names_origins) {
  const auto loaded =
      agent::read_settings({{{agent::OriginKind::project, "stint.toml", "[land]\ngate = [\"a b\", \"c\"]\n"}},
                            {{"STINT_STORE", "postgres://u:geheim@h/d"}},
                            {}});
  const std::string text = settings_to_json(loaded.settings.all, {});
  EXPECT_EQ(text.find("geheim"), std::string::npos);
  for (const json::value& setting : json::parse(text).at("settings").as_array()) {
    if (setting.at("key") == "store") {
      EXPECT_EQ(setting.at("origin").at("where"), "STINT_STORE");
    }
    if (setting.at("key") == "land.gate") {
      EXPECT_EQ(setting.at("value"), (json::array{"a b", "c"}));
      EXPECT_EQ(setting.at("origin").at("line"), 2);
    }
  }
}

TEST(TrustJson, lists_what_needs_trust) {
  const json::value answer = json::parse(to_json(TrustAnswer{{"/p", "/p/.git", "/p/.git"}, true, {{"./x", "a.md"}}}));
  EXPECT_EQ(answer.at("project"), "/p");
  EXPECT_EQ(answer.at("trusted_as"), "/p/.git");
  EXPECT_EQ(answer.at("needs_trust").at(0).at("what"), "./x");
  const std::vector<agent::TrustRecord> records{{"/p\xff", false}};
  EXPECT_EQ(json::parse(trust_to_json(records)).at("trusted").at(0).at("trusted_as"), "/p\xEF\xBF\xBD");
}

TEST(InitJson, names_files_and_their_outcome) {
  const std::vector<InitFile> files{{"brief.md", "kept", "the goal"}};
  EXPECT_EQ(init_to_json(files, true),
            R"({"dry_run":true,"files":[{"path":"brief.md","action":"kept","purpose":"the goal"}]})");
}

}  // namespace
}  // namespace stint::wire
