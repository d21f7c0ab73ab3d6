#include "http/guard.hpp"

#include <gtest/gtest.h>

namespace stint::http {
namespace {

TEST(HttpGuard, takes_host_and_port_apart) {
  EXPECT_EQ(host_of("localhost:80"), "localhost");
  EXPECT_EQ(host_of("[::1]:80"), "::1");
  EXPECT_EQ(host_of("[::1]"), "::1");
  for (const char* bad : {"", ":80", "a:b", "a:80:90", "[::1", "[::1]x", "user@host", "a b", "a/b", "::1"}) {
    EXPECT_EQ(host_of(bad), std::nullopt) << bad;
  }
}

TEST(HttpGuard, loopback_has_many_names) {
  for (const char* host : {"localhost", "LocalHost", "app.localhost", "127.0.0.1", "127.1.2.3", "::1"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host : {"", "mylocalhost", "localhost.evil.example", "127.evil.example", "127.0.0.1.nip.io",
                           "128.0.0.1", "127.0.0", "127.0.0.1.", "10.0.0.1"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(HttpGuard, knows_its_own_names) {
  GuardRules rules;
  rules.listen_host = "192.0.2.7";
  rules.allowed_hosts = {"stint.internal"};
  EXPECT_TRUE(host_allowed("192.0.2.7:7717", rules));
  EXPECT_TRUE(host_allowed("Stint.Internal:443", rules));
  EXPECT_TRUE(host_allowed("localhost", rules));
  EXPECT_FALSE(host_allowed("192.0.2.8", rules));
  EXPECT_FALSE(host_allowed("evil.example:7717", rules));
  EXPECT_FALSE(host_allowed("", rules));
}

TEST(HttpGuard, a_server_on_all_interfaces_accepts_any_address) {
  GuardRules rules;
  for (const char* everywhere : {"0.0.0.0", "::"}) {
    rules.listen_host = everywhere;
    EXPECT_TRUE(host_allowed("192.0.2.8:7717", rules));
    EXPECT_TRUE(host_allowed("[2001:db8::1]:7717", rules));
    EXPECT_FALSE(host_allowed("evil.example", rules));
    EXPECT_FALSE(host_allowed("192.0.2.8.evil.example", rules));
  }
}

TEST(HttpGuard, an_origin_must_match_the_host_of_the_request) {
  EXPECT_TRUE(same_origin("http://localhost:7717", "localhost:7717"));
  EXPECT_TRUE(same_origin("http://LOCALHOST:7717", "localhost:7717"));
  EXPECT_TRUE(same_origin("http://localhost", "localhost:80"));
  EXPECT_TRUE(same_origin("https://stint.internal", "stint.internal"));
  EXPECT_TRUE(same_origin("http://localhost:7717", "127.0.0.1:7717"));
  EXPECT_TRUE(same_origin("http://[::1]:7717", "localhost:7717"));
  EXPECT_TRUE(same_origin("http://127.0.0.1", "[::1]:80"));
  EXPECT_FALSE(same_origin("http://localhost:7718", "127.0.0.1:7717")) << "another program";
  EXPECT_FALSE(same_origin("http://localhost", "[::1]:7717"));
  EXPECT_FALSE(same_origin("http://localhost.evil.example:7717", "127.0.0.1:7717"));
  EXPECT_FALSE(same_origin("http://localhost:7717", "192.0.2.7:7717"));
  for (const char* origin : {"null", "", "http://", "http://localhost:7718", "http://evil.example",
                             "http://localhost:7717.evil", "file://localhost:7717", "http://localhost"}) {
    EXPECT_FALSE(same_origin(origin, "localhost:7717")) << origin;
  }
}

TEST(HttpGuard, secrets_are_compared_completely) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* given : {"", "a", "ab", "abd", "abcabc", "xbc", "abcd"})
    EXPECT_FALSE(same_secret(given, "abc")) << given;
  EXPECT_FALSE(same_secret("", ""));
}

class HttpGuardCheck : public ::testing::Test {
 protected:
  unsigned ask(std::vector<net::Field> headers, std::string_view host = "localhost") {
    Request request;
    request.method = "GET";
    request.host = host;
    request.headers = std::move(headers);
    request.parts.path = path;
    const auto refusal = check(request, rules);
    return refusal ? refusal->status : 200;
  }
  GuardRules rules;
  std::string path = "/";
};

TEST_F(HttpGuardCheck, host_and_origin_are_checked_without_a_token) {
  EXPECT_EQ(ask({}), 200U);
  EXPECT_EQ(ask({}, "evil.example"), 421U);
  EXPECT_EQ(ask({}, ""), 421U);
  EXPECT_EQ(ask({{"Origin", "http://localhost"}}), 200U);
  EXPECT_EQ(ask({{"origin", "http://evil.example"}}), 403U);
}

TEST_F(HttpGuardCheck, the_token_is_required) {
  rules.token = "t";
  EXPECT_EQ(ask({}), 401U);
  EXPECT_EQ(ask({{"Authorization", "t"}}), 401U);
  EXPECT_EQ(ask({{"Authorization", "Basic t"}}), 401U);
  EXPECT_EQ(ask({{"Authorization", "Bearer"}}), 401U);
  EXPECT_EQ(ask({{"Authorization", "Bearer x"}}), 401U);
  EXPECT_EQ(ask({{"authorization", "bearer t"}}), 200U);
}

TEST_F(HttpGuardCheck, open_paths_and_other_tokens) {
  rules.token = "t";
  rules.is_open = [](const Request& request) { return request.path() == "/healthz"; };
  rules.other_token = [](std::string_view token) { return token == "of a run"; };
  EXPECT_EQ(ask({{"Authorization", "Bearer of a run"}}), 200U);
  path = "/healthz";
  EXPECT_EQ(ask({}), 200U);
  EXPECT_EQ(ask({}, "evil.example"), 421U);
}

}  // namespace
}  // namespace stint::http
