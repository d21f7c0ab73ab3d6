#include "http/assets.hpp"

#include "http/api.hpp"
#include "net/request_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace stint::http {
namespace {

struct Read {
  explicit Read(const std::string& head) { reader.feed(head + "Host: x\r\n\r\n"); }
  const net::Request& operator*() const { return reader.request(); }
  net::RequestReader reader{{}};
};

std::string header(const Response& response, std::string_view name) {
  const auto found = std::ranges::find(response.headers, name, [](const auto& each) { return each.first; });
  return found == response.headers.end() ? "" : found->second;
}

const std::string kBrowser = "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nAccept-Encoding: gzip, br\r\n";

std::string script() {
  for (const Asset& asset : embedded_assets()) {
    if (asset.name.ends_with(".js")) return "/assets/" + std::string(asset.name);
  }
  return "";
}

TEST(Assets, browsers_get_the_page_and_other_clients_do_not) {
  const auto page = asset_response(*Read("GET / HTTP/1.1\r\n" + kBrowser));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200U);
  EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(header(*page, "Cache-Control"), "no-cache");
  EXPECT_EQ(page->body.substr(0, 2), "\x1f\x8b");
  for (const char* const head : {"GET / HTTP/1.1\r\nAccept: */*\r\n", "GET / HTTP/1.1\r\n", "GET /v1/runs HTTP/1.1\r\n",
                                 "POST / HTTP/1.1\r\nAccept: text/html\r\n"}) {
    EXPECT_FALSE(asset_response(*Read(head))) << head;
  }
}

TEST(Assets, a_file_is_kept_for_ever_because_its_name_has_its_hash) {
  const auto file = asset_response(*Read("GET " + script() + " HTTP/1.1\r\nAccept-Encoding: gzip\r\n"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->status, 200U);
  EXPECT_EQ(header(*file, "Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(header(*file, "Content-Encoding"), "gzip");
  EXPECT_EQ(file->body.substr(4, 4), std::string(4, '\0')) << "the time of the file would differ from build to build";
  const auto again = asset_response(*Read(
      "GET " + script() + " HTTP/1.1\r\nAccept-Encoding: gzip\r\nIf-None-Match: " + header(*file, "ETag") + "\r\n"));
  EXPECT_EQ(again->status, 304U);
}

TEST(Assets, every_answer_carries_the_policy) {
  for (const std::string& head :
       {"GET / HTTP/1.1\r\n" + kBrowser, "GET " + script() + " HTTP/1.1\r\nAccept-Encoding: gzip\r\n",
        std::string("GET /assets/app-OLD.js HTTP/1.1\r\n"), "GET " + script() + " HTTP/1.1\r\n"}) {
    const auto answer = asset_response(*Read(head));
    ASSERT_TRUE(answer) << head;
    EXPECT_EQ(header(*answer, "X-Content-Type-Options"), "nosniff") << head;
    EXPECT_EQ(header(*answer, "Referrer-Policy"), "no-referrer") << head;
    const std::string policy = header(*answer, "Content-Security-Policy");
    EXPECT_TRUE(policy.starts_with("default-src 'none'")) << head;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << head;
  }
}

TEST(Assets, a_client_without_gzip_and_an_unknown_name_are_refused) {
  for (const char* const accepts : {"", "Accept-Encoding: br\r\n", "Accept-Encoding: gzip;q=0, *\r\n"}) {
    EXPECT_EQ(asset_response(*Read("GET " + script() + " HTTP/1.1\r\n" + accepts))->status, 406U) << accepts;
  }
  EXPECT_EQ(asset_response(*Read("GET " + script() + " HTTP/1.1\r\nAccept-Encoding: *\r\n"))->status, 200U);
  for (const char* const name : {"", "app-OLD.js", "manifest.json", "index.html", "../v1/runs", "%2e%2e/v1/runs"}) {
    EXPECT_EQ(
        asset_response(*Read("GET /assets/" + std::string(name) + " HTTP/1.1\r\nAccept-Encoding: gzip\r\n"))->status,
        404U)
        << name;
  }
}

TEST(Assets, only_reading_them_needs_no_token) {
  EXPECT_TRUE(Api::is_open(*Read("GET / HTTP/1.1\r\n" + kBrowser)));
  EXPECT_TRUE(Api::is_open(*Read("HEAD " + script() + " HTTP/1.1\r\n")));
  for (const char* const head :
       {"GET / HTTP/1.1\r\nAccept: */*\r\n", "POST /assets/x HTTP/1.1\r\n", "GET /v1/assets/x HTTP/1.1\r\n",
        "GET /v1/runs HTTP/1.1\r\nAccept: text/html\r\n", "GET /assets/x HTTP/1.1\r\nContent-Length: 4000000\r\n"}) {
    EXPECT_FALSE(Api::is_open(*Read(head))) << head;
  }
}

}  // namespace
}  // namespace stint::http
