// Routing of requests. tests/integration/serve_test.py covers the handlers with a whole daemon.
#include "http/api.hpp"

#include "domain/driver_descriptor.hpp"
#include "domain/fleet_event.hpp"
#include "domain/run_causes.hpp"
#include "domain/verdict.hpp"
#include "http/api_test_support.hpp"
#include "pool/recorder.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace stint::http {
namespace {

struct Asking {
  Response ask(std::string_view method, std::string_view target, std::string_view header = "",
               std::string_view body = "") {
    Api api(fleet, options);
    return ask_api(api, exchange, method, target, body, header);
  }
  std::string allowed(std::string_view method, std::string_view target) {
    const Response response = ask(method, target);
    EXPECT_EQ(response.status, 405U) << target;
    return response.headers.empty() ? std::string() : response.headers.front().second;
  }
  /// (method, path) of everything that `openapi.json` describes.
  std::vector<std::pair<std::string, std::string>> documented() {
    std::vector<std::pair<std::string, std::string>> routes;
    const auto document = boost::json::parse(ask("GET", "/openapi.json").body);
    for (const auto& [path, methods] : document.at("paths").as_object()) {
      for (const auto& [method, description] : methods.as_object()) {
        std::string upper(method);
        std::ranges::transform(upper, upper.begin(), [](char each) { return static_cast<char>(std::toupper(each)); });
        if (upper == "GET" || upper == "POST" || upper == "PUT") routes.emplace_back(upper, path);
      }
    }
    EXPECT_GT(routes.size(), 20U);
    return routes;
  }
  NoFleet fleet;
  NoExchange exchange;
  ApiOptions options;
};

TEST(Api, every_route_matches_its_own_method_only) {
  Asking asking;
  for (const auto& [method, route] : asking.documented()) {
    std::string path = route;
    if (const std::size_t open = path.find('{'); open != std::string::npos) {
      path.replace(open, path.find('}') + 1 - open, "some%2Fone");
    }
    const Response found = asking.ask(method, path);
    EXPECT_NE(found.status, 404U) << route;
    EXPECT_NE(found.status, 405U) << route;
    const Response refused = asking.ask("PATCH", path);
    EXPECT_EQ(refused.status, 405U) << route;
    const Response longer = asking.ask(method, path == "/" ? "//" : path + "/");
    EXPECT_EQ(longer.status, 404U) << route;
  }
}

TEST(Api, path_parameters_are_decoded) {
  Asking asking;
  (void)asking.ask("GET", "/v1/runs/a%2Fb%20c");
  EXPECT_EQ(asking.fleet.asked, "a/b c");
  (void)asking.ask("POST", "/v1/limits/agent%3Areview/resume");
  EXPECT_EQ(asking.fleet.asked, "agent:review");
  (void)asking.ask("POST", "/v1/resume");
  EXPECT_EQ(asking.fleet.asked, "");
}

TEST(Api, a_name_that_does_not_exist_names_the_list_of_those_that_do) {
  Asking asking;
  asking.fleet.empty = true;
  const auto list_of = [](const Response& response) {
    EXPECT_EQ(response.status, 404U) << response.body;
    const auto problem = boost::json::parse(response.body).as_object();
    const auto* const list = problem.if_contains("list");
    return list == nullptr ? std::string("none") : std::string(list->as_string());
  };
  const std::string body = R"({"agent":"ghost"})";
  const std::string header =
      "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  EXPECT_EQ(list_of(asking.ask("POST", "/v1/runs", header, body)), "/v1/agents");
  EXPECT_EQ(list_of(asking.ask("POST", "/v1/limits/ghost/resume")), "/v1/limits");
  EXPECT_EQ(list_of(asking.ask("GET", "/v1/ghost")), "none");
}

TEST(Api, unknown_paths_are_404_and_wrong_methods_405) {
  Asking asking;
  for (const char* path :
       {"/v1", "/v1/runs/", "/v1/runs//events", "/v1/run", "/V1/runs", "/v1/runs/x/y", "/a/b/c/d/e"}) {
    EXPECT_EQ(asking.ask("GET", path).status, 404U) << path;
  }
  EXPECT_EQ(asking.allowed("PATCH", "/v1/runs"), "POST, GET, HEAD");
  EXPECT_EQ(asking.allowed("GET", "/v1/limits/x/pause"), "POST");
  EXPECT_EQ(asking.allowed("POST", "/v1/pool"), "GET, HEAD, PUT");
  EXPECT_EQ(asking.ask("HEAD", "/healthz").status, 200U);
  EXPECT_EQ(asking.ask("GET", "/healthz", "Content-Encoding: gzip\r\n").status, 415U);
}

TEST(Api, a_reserved_connection_gets_short_answers_only) {
  Asking asking;
  asking.exchange.in_reserve = true;
  for (const char* const target : {"/v1/events", "/api/agent/run?session_id=s&query=x"}) {
    const bool stream = std::string_view(target) == "/v1/events";
    const Response refused = asking.ask(stream ? "GET" : "POST", target, "Accept: text/event-stream\r\n");
    EXPECT_EQ(refused.status, 503U) << target;
    ASSERT_EQ(refused.headers.size(), 1U);
    EXPECT_EQ(refused.headers.front().first, "Retry-After");
  }
  EXPECT_EQ(asking.ask("GET", "/healthz").status, 200U);
}

TEST(Api, only_a_probe_without_a_body_needs_no_token) {
  const auto is_open = [](const std::string& head) {
    net::RequestReader reader{{}};
    reader.feed(head + "Host: x\r\n\r\n");
    return Api::is_open(reader.request());
  };
  EXPECT_TRUE(is_open("GET /healthz HTTP/1.1\r\n"));
  EXPECT_TRUE(is_open("HEAD /readyz HTTP/1.1\r\n"));
  for (const char* const head : {"POST /healthz HTTP/1.1\r\n", "PUT /readyz HTTP/1.1\r\nContent-Length: 9\r\n",
                                 "GET /v1/runs HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nContent-Length: 4000000\r\n",
                                 "GET /readyz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"}) {
    EXPECT_FALSE(is_open(head)) << head;
  }
}

TEST(Api, the_token_of_a_run_permits_routes_for_runs) {
  Asking asking;
  asking.options.run_of_token = [](std::string_view token) { return token == "run" ? "a-run" : ""; };
  const std::string run = "Authorization: Bearer run\r\n";
  EXPECT_EQ(asking.ask("GET", "/healthz", run).status, 200U);
  EXPECT_EQ(asking.ask("PUT", "/v1/pool", run).status, 403U);
  EXPECT_NE(asking.ask("PUT", "/v1/pool", "Authorization: Bearer person\r\n").status, 403U);
}

TEST(Openapi, the_drivers_are_those_of_the_table) {
  const auto document = boost::json::parse(openapi_text());
  const auto& named = document.at("components").at("schemas").at("Driver").at("enum").as_array();
  std::vector<std::string_view> names;
  for (const auto& name : named) names.emplace_back(name.as_string());
  EXPECT_EQ(names, std::vector<std::string_view>(domain::kDriverNames.begin(), domain::kDriverNames.end()));
}

/// The values of the enum of a schema, in order.
std::set<std::string, std::less<>> described(std::string_view schema) {
  const auto document = boost::json::parse(openapi_text());
  std::set<std::string, std::less<>> names;
  for (const auto& name : document.at("components").at("schemas").at(schema).at("enum").as_array()) {
    names.emplace(name.as_string());
  }
  return names;
}

TEST(Openapi, the_causes_of_the_fleet_are_those_of_the_code) {
  std::set<std::string, std::less<>> causes = {"batch_began", "batch_ended"};
  causes.insert(domain::kFleetCauses.begin(), domain::kFleetCauses.end());
  EXPECT_EQ(described("FleetCause"), causes);
}

TEST(Openapi, the_causes_of_runs_are_those_of_the_code) {
  std::set<std::string, std::less<>> causes(pool::kNoteCauses.begin(), pool::kNoteCauses.end());
  for (const std::string_view cause : domain::run_causes()) causes.emplace(cause);
  EXPECT_EQ(described("RunCause"), causes);
}

TEST(Openapi, the_rules_of_verdicts_are_those_of_the_code) {
  std::set<std::string, std::less<>> rules;
  for (const domain::VerdictRule rule : domain::kVerdictRules) rules.emplace(to_string(rule));
  EXPECT_EQ(described("VerdictRule"), rules);
}

}  // namespace
}  // namespace stint::http
