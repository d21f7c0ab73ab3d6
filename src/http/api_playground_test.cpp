// The playground over HTTP: routes, statuses, bounds. tests/integration/playground_test.py plays with a whole daemon.
#include "http/api.hpp"
#include "http/api_test_support.hpp"
#include "playground/presets.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <algorithm>

namespace stint::http {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

struct Playing {
  Playing() {
    ApiOptions options;
    options.playground = {.pool = &pool,
                          .elapsed = [this] { return now; },
                          .processor_time = [this] { return processor += per_look; },
                          .random = [this] { return ++ids; }};
    api.emplace(fleet, std::move(options));
  }
  Response ask(std::string_view method, const std::string& target, const std::string& body = {}) {
    return ask_api(*api, exchange, method, target, body);
  }
  json::object get(std::string_view method, const std::string& target, const std::string& body = {}) {
    const Response response = ask(method, target, body);
    EXPECT_LT(response.status, 300U) << target << response.body;
    return json::parse(response.body).as_object();
  }
  std::string open(const std::string& body) {
    return std::string(get("POST", "/v1/playground", body).at("id").as_string());
  }

  BlockingPool pool{"playground", 0};  // in place
  NoFleet fleet;
  NoExchange exchange;
  Duration now{}, processor{}, per_look{};
  std::uint64_t ids = 0;
  std::optional<Api> api;
};

constexpr const char* kGarage = R"({"resources":[{"name":"garage","kind":"semaphore","capacity":1}]})";

TEST(ApiPlayground, a_sandbox_from_its_beginning_to_its_end) {
  Playing playing;
  const Response made = playing.ask("POST", "/v1/playground", kGarage);
  EXPECT_EQ(made.status, 201U) << made.body;
  EXPECT_EQ(made.headers.front().second, "/v1/playground/0000000000000001");
  const std::string path = made.headers.front().second;
  (void)playing.get("POST", path + "/act", R"({"do":"acquire","task":"a","resource":"garage"})");
  const auto waits = playing.get("POST", path + "/act", R"({"do":"acquire","task":"b","resource":"garage"})");
  EXPECT_EQ(waits.at("resources").at(0).at("line").at(0).at("task").as_string(), "b");
  EXPECT_EQ(waits.at("events").as_array().size(), 2U);
  EXPECT_EQ(playing.get("GET", path), waits);
  const auto back = playing.get("POST", path + "/back", R"({"steps":1000})");
  EXPECT_EQ(back.at("step").to_number<int>(), 0);
  EXPECT_TRUE(back.at("actions").as_array().empty());
  EXPECT_EQ(playing.ask("DELETE", path).status, 204U);
  EXPECT_EQ(playing.ask("DELETE", path).status, 404U);
  EXPECT_EQ(playing.ask("GET", path).status, 404U);
}

TEST(ApiPlayground, a_preset_plays_to_its_end_and_steps) {
  Playing playing;
  for (const auto& listed : playing.get("GET", "/v1/playground").at("presets").as_array()) {
    const std::string name(listed.at("name").as_string());
    const std::string path = "/v1/playground/" + playing.open(R"({"preset":")" + name + R"("})");
    const auto first = playing.get("POST", path + "/step");
    EXPECT_EQ(first.at("step").to_number<int>(), 1) << name;
    const auto end = playing.get("POST", path + "/play");
    EXPECT_TRUE(end.at("done").as_bool()) << name;
    const int steps = end.at("step").to_number<int>();
    EXPECT_EQ(playing.get("POST", path + "/back", "{\"steps\":" + std::to_string(steps - 1) + "}"), first) << name;
    EXPECT_EQ(playing.get("POST", path + "/step", "{\"steps\":" + std::to_string(steps - 1) + "}"), end) << name;
  }
}

TEST(ApiPlayground, refusals_have_their_status) {
  Playing playing;
  const std::string path = "/v1/playground/" + playing.open(kGarage);
  const auto before = playing.get("GET", path);
  for (const auto& [body, status, text] :
       {std::tuple(R"({"do":"acquire","task":"a","resource":"nowhere"})", 422U, "nowhere"),
        std::tuple(R"({"do":"acquire","task":"a b","resource":"garage"})", 422U, "'task'"),
        std::tuple(R"({"do":"cancel","task":"a"})", 409U, "there is no task 'a'"),
        std::tuple(R"({"do":"discard","task":"a","resource":"garage"})", 422U, "it is a semaphore"),
        std::tuple(R"({"do":"fly"})", 422U, "'do'"), std::tuple("{", 422U, ""), std::tuple("", 422U, "")}) {
    const Response refused = playing.ask("POST", path + "/act", body);
    EXPECT_EQ(refused.status, status) << body << refused.body;
    EXPECT_TRUE(refused.body.contains(text)) << refused.body;
    EXPECT_EQ(refused.content_type, kProblemJson) << body;
  }
  EXPECT_EQ(playing.ask("POST", path + "/step", R"({"steps":0})").status, 422U);
  EXPECT_EQ(playing.ask("POST", path + "/play", R"({"steps":1})").status, 422U);
  EXPECT_EQ(playing.ask("POST", "/v1/playground/unknown/step").status, 404U);
  EXPECT_EQ(playing.ask("POST", "/v1/playground", R"({"preset":"unknown"})").status, 422U);
  EXPECT_EQ(playing.get("GET", path), before) << "a refusal changes nothing";
}

TEST(ApiPlayground, sandboxes_are_bounded_and_counted) {
  Playing playing;
  const std::string first = playing.open(kGarage);
  for (std::size_t i = 1; i < playground::kSandboxesMax; ++i) {
    playing.now += 1s;
    (void)playing.open(kGarage);
  }
  EXPECT_EQ(playing.ask("GET", "/v1/playground/" + first).status, 200U);
  const std::string second = "0000000000000002";
  (void)playing.open(kGarage);
  EXPECT_EQ(playing.ask("GET", "/v1/playground/" + second).status, 404U) << "the longest idle";
  EXPECT_EQ(playing.ask("GET", "/v1/playground/" + first).status, 200U);
  playing.now += playground::kSandboxIdleMax;
  EXPECT_EQ(playing.ask("GET", "/v1/playground/" + first).status, 404U);
}

TEST(ApiPlayground, a_replay_that_takes_too_long_is_503) {
  Playing playing;
  std::string actions;
  for (int i = 0; i < 100; ++i) actions += std::string(i == 0 ? "" : ",") + R"({"do":"work","task":"a","ms":1})";
  const std::string path = "/v1/playground/" + playing.open(R"({"actions":[)" + actions + "]}");
  playing.per_look = playground::kReplayMax + 1ms;
  const Response slow = playing.ask("POST", path + "/play");
  EXPECT_EQ(slow.status, 503U) << slow.body;
  EXPECT_TRUE(slow.body.contains("longer than 50 ms")) << slow.body;
  playing.per_look = 0ms;
  EXPECT_EQ(playing.get("GET", path).at("step").to_number<int>(), 0);
}

TEST(ApiPlayground, a_daemon_without_one_says_so) {
  NoFleet fleet;
  NoExchange exchange;
  Api api(fleet, {});
  EXPECT_EQ(ask_api(api, exchange, "GET", "/v1/playground/x").status, 503U);
  EXPECT_EQ(ask_api(api, exchange, "POST", "/v1/playground", "{}").status, 503U);
  EXPECT_EQ(ask_api(api, exchange, "GET", "/v1/playground").status, 200U);
}

}  // namespace
}  // namespace stint::http
