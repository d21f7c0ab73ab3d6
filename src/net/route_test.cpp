#include "net/route.hpp"

#include <gtest/gtest.h>

#include <map>

namespace stint::net {
namespace {

Variables variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Route, host_and_port_of_a_url) {
  EXPECT_EQ(host_port_of("https://api.example/v1?x", 443), (HostPort{"api.example", 443}));
  EXPECT_EQ(host_port_of("http://user:pass@host:81/a@b:2", 80), (HostPort{"host", 81}));
  EXPECT_EQ(host_port_of("https://[::1]:8443/x", 443), (HostPort{"::1", 8443}));
  EXPECT_EQ(host_port_of("[::1]", 1080), (HostPort{"::1", 1080}));
  EXPECT_EQ(host_port_of("proxy:3128", 1080), (HostPort{"proxy", 3128}));
  for (const char* wrong : {"", "http://", "http://:80/", "http://h:x/", "http://h:70000/", "http://h:0/"}) {
    EXPECT_EQ(host_port_of(wrong, 80), std::nullopt) << wrong;
  }
}

TEST(Route, only_names_are_looked_up) {
  EXPECT_TRUE(needs_lookup("api.example"));
  EXPECT_TRUE(needs_lookup("host_1"));
  for (const char* other :
       {"127.0.0.1", "::1", "localhost", "LOCALHOST", "a.localhost", "m\xc3\xbcller.example", "a%41"}) {
    EXPECT_FALSE(needs_lookup(other)) << other;
  }
}

TEST(Route, a_list_covers_names_below_an_entry_and_networks) {
  for (const char* list : {"*", "example.com", ".example.com", "a,EXAMPLE.com", "x api.example.com", "example.com."}) {
    EXPECT_TRUE(covers_host(list, "api.example.com")) << list;
  }
  for (const char* list : {"", ",", ".", "ample.com", "api.example", "b.example.com", "example.com:443"}) {
    EXPECT_FALSE(covers_host(list, "api.example.com")) << list;
  }
  EXPECT_TRUE(covers_host("10.0.0.0/8", "10.1.2.3"));
  EXPECT_FALSE(covers_host("10.0.0.0/8", "11.1.2.3"));
  EXPECT_TRUE(covers_host("10.1.2.3", "10.1.2.3"));
  EXPECT_TRUE(covers_host("fd00::/8", "[fd12::1]"));
  EXPECT_FALSE(covers_host("fd00::/8,10.0.0.0/x,10.0.0.0/33", "10.0.0.1"));
}

TEST(Route, variables_choose_the_proxy) {
  const auto of = [](std::string_view url, std::map<std::string, std::string> values) {
    return proxy_of(url, variables(std::move(values)));
  };
  EXPECT_EQ(of("https://a.example/", {}), "");
  EXPECT_EQ(of("https://a.example/", {{"https_proxy", "p:1"}, {"HTTPS_PROXY", "q:1"}}), "p:1");
  EXPECT_EQ(of("https://a.example/", {{"HTTPS_PROXY", "q:1"}, {"all_proxy", "r:1"}}), "q:1");
  EXPECT_EQ(of("https://a.example/", {{"https_proxy", ""}, {"ALL_PROXY", "r:1"}}), "r:1");
  EXPECT_EQ(of("http://a.example/", {{"http_proxy", "p:1"}, {"https_proxy", "q:1"}}), "p:1");
  EXPECT_EQ(of("http://a.example/", {{"HTTP_PROXY", "p:1"}}), "");
  EXPECT_EQ(of("https://a.example/", {{"https_proxy", "p:1"}, {"NO_PROXY", "example"}}), "");
  EXPECT_EQ(of("https://a.example/", {{"https_proxy", "p:1"}, {"no_proxy", "b"}, {"NO_PROXY", "example"}}), "p:1");
  EXPECT_EQ(of("https://localhost:1/", {{"all_proxy", "p:1"}}), "");
}

TEST(Route, the_proxys_name_is_resolved_instead_of_the_servers) {
  EXPECT_EQ(name_to_resolve("https://a.example/", ""), (HostPort{"a.example", 443}));
  EXPECT_EQ(name_to_resolve("http://a.example/", ""), (HostPort{"a.example", 80}));
  EXPECT_EQ(name_to_resolve("https://a.example/", "http://user:p@proxy.example:3128"),
            (HostPort{"proxy.example", 3128}));
  EXPECT_EQ(name_to_resolve("https://a.example/", "proxy.example"), (HostPort{"proxy.example", 1080}));
  EXPECT_EQ(name_to_resolve("https://a.example/", "https://proxy.example"), (HostPort{"proxy.example", 443}));
  EXPECT_EQ(name_to_resolve("https://a.example/", "127.0.0.1:3128"), std::nullopt);
  for (const char* none : {"https://127.0.0.1/", "nonsense://x", "x", "https://", ""}) {
    EXPECT_EQ(name_to_resolve(none, ""), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace stint::net
