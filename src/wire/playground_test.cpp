#include "wire/playground.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace stint::wire {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using playground::Verb;

std::string action_refusal(std::string_view body) {
  const auto action = read_action(body);
  EXPECT_FALSE(action) << body;
  return action ? std::string() : std::string(action.error().what());
}

TEST(PlaygroundJson, an_action_has_the_members_of_its_verb) {
  const auto action =
      read_action(R"({"do":"acquire","task":"a","resource":"s","weight":3,"priority":-4,"timeout_ms":1500})").value();
  EXPECT_EQ(action.verb, Verb::acquire);
  EXPECT_EQ(action.units, 3U);
  EXPECT_EQ(action.priority, -4);
  EXPECT_EQ(action.timeout, 1500ms);
  EXPECT_EQ(read_action(R"({"do":"bypass","resource":"s","bypass_max":7})").value().capacity, 7U);
  EXPECT_TRUE(action_refusal(R"({"do":"acquire","task":"a"})").contains("'resource' is missing"));
  EXPECT_TRUE(action_refusal(R"({"do":"close","resource":"s","task":"a"})").contains("no field 'task'"));
  EXPECT_TRUE(action_refusal(R"({"do":"shout"})").contains("'do' must be one of acquire, release"));
  EXPECT_TRUE(action_refusal(R"({"task":"a"})").contains("'do'"));
  EXPECT_TRUE(action_refusal(R"({"do":"work","task":"a","ms":3600001})").contains("from 0 to 3600000"));
  EXPECT_TRUE(action_refusal(R"({"do":"work","task":null,"ms":1})").contains("null"));
  EXPECT_TRUE(action_refusal(R"({"do":"acquire","task":"a","resource":"s","weight":101})").contains("from 1 to 100"));
  EXPECT_TRUE(action_refusal(R"({"do":"advance","ms":1,"at_step":1})").contains("no field 'at_step'"));
  EXPECT_FALSE(read_action("[]"));
  EXPECT_FALSE(read_action(""));
}

TEST(PlaygroundJson, a_sandbox_is_read_back_from_what_is_shown) {
  const auto made =
      read_sandbox(R"({"seed":7,"order":"seeded","resources":[{"name":"s","kind":"semaphore","capacity":1},
      {"name":"m","kind":"mutex"},{"name":"p","kind":"pool","capacity":2},{"name":"v","kind":"server"}]})");
  ASSERT_TRUE(made) << made.error().describe();
  playground::Played played{*made, {}};
  for (const char* body :
       {R"({"do":"acquire","task":"a","resource":"s"})", R"({"do":"acquire","task":"b","resource":"s","timeout_ms":5})",
        R"({"do":"acquire","task":"a","resource":"p"})", R"({"do":"discard","task":"a","resource":"p"})",
        R"({"do":"release","task":"b","resource":"m","of":"a"})", R"({"do":"work","task":"a","ms":3})",
        R"({"do":"stream","task":"c","units":2,"ms":1,"timeout_ms":9,"owned":true})",
        R"({"do":"resize","resource":"s","capacity":4})", R"({"do":"advance","ms":7})",
        R"({"do":"return_units","task":"a","resource":"s","units":1})", R"({"do":"cancel","task":"b"})",
        R"({"do":"close","resource":"m"})"}) {
    auto next = playground::act(played.sandbox, read_action(body).value());
    ASSERT_TRUE(next) << body << next.error().describe();
    played = *std::move(next);
  }
  const json::object shown = json::parse(to_json("x", played)).as_object();
  json::array resources;
  for (const auto& spec : played.sandbox.setup.resources) {
    json::object entry{{"name", spec.name}, {"kind", to_string(spec.kind)}};
    if (spec.name == "s" || spec.name == "p") entry["capacity"] = spec.capacity;
    resources.push_back(entry);
  }
  const json::object again{{"seed", shown.at("seed")},
                           {"order", shown.at("order")},
                           {"resources", resources},
                           {"actions", shown.at("actions")},
                           {"step", shown.at("step")}};
  const auto read = read_sandbox(json::serialize(again));
  ASSERT_TRUE(read) << read.error().describe();
  EXPECT_EQ(*read, played.sandbox);
  EXPECT_EQ(playground::look(*read).value().view, played.view);
}

TEST(PlaygroundJson, a_debt_is_a_number_of_its_own) {
  playground::Sandbox sandbox;
  sandbox.setup.resources = {{.name = "s", .capacity = 2}};
  auto played = playground::act(sandbox, {.verb = Verb::acquire, .task = "a", .resource = "s", .units = 2}).value();
  played = playground::act(played.sandbox, {.verb = Verb::resize, .resource = "s", .capacity = 0}).value();
  const json::value shown = json::parse(to_json("x", played));
  const json::object& resource = shown.at("resources").at(0).as_object();
  EXPECT_EQ(resource.at("available").to_number<int>(), 0);
  EXPECT_EQ(resource.at("debt").to_number<int>(), 2);
  EXPECT_EQ(resource.at("holders").at(0).at("units").to_number<int>(), 2);
  EXPECT_EQ(shown.at("events").at(1).at("units").to_number<int>(), 0) << "resized to 0";
}

TEST(PlaygroundJson, a_preset_brings_its_resources) {
  const auto sandbox = read_sandbox(R"({"preset":"three-at-two","step":3})").value();
  EXPECT_EQ(sandbox.setup.resources.size(), 1U);
  EXPECT_EQ(sandbox.step, 3U);
  EXPECT_EQ(read_sandbox(R"({"preset":"three-at-two","resources":[]})").error().code(), Errc::invalid);
  EXPECT_TRUE(read_sandbox(R"({"preset":"none"})").error().what().contains("/v1/playground"));
  EXPECT_EQ(read_sandbox(R"({"preset":""})").error().code(), Errc::invalid) << "empty is not absent";
  EXPECT_EQ(read_sandbox(R"({"preset":"three-at-two","actions":[]})").value().actions.size(), 0U);
  const json::value shown = json::parse(presets_to_json(playground::presets()));
  EXPECT_EQ(shown.at("presets").as_array().size(), 8U);
  EXPECT_EQ(shown.at("presets").at(0).at("sentences").as_array().size(), 3U);
}

TEST(PlaygroundJson, refusals_name_the_entry) {
  const auto text = [](std::string_view body) { return std::string(read_sandbox(body).error().what()); };
  EXPECT_TRUE(text(R"({"resources":[{"name":"a","kind":"mutex"},3]})").contains("entry 2 of 'resources'"));
  EXPECT_TRUE(
      text(R"({"resources":[{"name":"a","kind":"mutex","capacity":1}]})").contains("does not have a 'capacity'"));
  EXPECT_TRUE(text(R"({"resources":[{"name":"a","kind":"pool"}]})").contains("needs a 'capacity'"));
  EXPECT_TRUE(
      text(R"({"resources":[{"name":"a","kind":"pool","capacity":1,"bypass_max":1}]})").contains("'bypass_max'"));
  EXPECT_TRUE(text(R"({"resources":[{},{},{},{},{}]})").contains("at most 4"));
  EXPECT_TRUE(text(R"({"actions":[{"do":"advance","ms":1},{"do":"advance"}]})").contains("entry 2 of 'actions'"));
  EXPECT_TRUE(text(R"({"actions":[{"do":"release","task":"a","resource":"s","of":""}]})").contains("'of'"));
  EXPECT_TRUE(text(R"({"seed":9007199254740992})").contains("'seed'"));
  EXPECT_TRUE(text(R"({"seed":-1})").contains("'seed'"));
  EXPECT_TRUE(text(R"({"order":"random"})").contains("fifo, seeded"));
  EXPECT_TRUE(text(R"({"what":1})").contains("'what'"));
}

TEST(PlaygroundJson, steps_are_one_unless_given) {
  EXPECT_EQ(read_steps("").value().count, 1U);
  EXPECT_EQ(read_steps("{}").value().count, 1U);
  EXPECT_EQ(read_steps(R"({"steps":20000})").value().count, 20'000U);
  EXPECT_FALSE(read_steps(R"({"by":"step"})").value().by_event);
  EXPECT_TRUE(read_steps(R"({"by":"event","steps":2})").value().by_event);
  EXPECT_FALSE(read_steps(R"({"by":""})"));
  EXPECT_FALSE(read_steps(R"({"steps":0})"));
  EXPECT_FALSE(read_steps(R"({"steps":20001})"));
  EXPECT_FALSE(read_steps(R"({"step":1})"));
}

}  // namespace
}  // namespace stint::wire
