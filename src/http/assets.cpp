#include "http/assets.hpp"

#include "agent/text.hpp"
#include "http/negotiate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::http {
namespace {

constexpr std::string_view kFolder = "/assets/", kIndex = "index.html";
// Scripts and styles come from here alone and are never inline; nothing may frame the page or turn text into markup.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri "
    "'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

std::string_view type_of(std::string_view name) noexcept {
  struct Type {
    std::string_view ending, type;
  };
  constexpr Type kTypes[] = {{".html", "text/html; charset=utf-8"},
                             {".js", "text/javascript; charset=utf-8"},
                             {".css", "text/css; charset=utf-8"},
                             {".svg", "image/svg+xml"}};
  const auto* const found = std::ranges::find_if(kTypes, [&](const Type& each) { return name.ends_with(each.ending); });
  return found == std::end(kTypes) ? "application/octet-stream" : found->type;
}

bool is_page(const net::Request& request) { return request.path() == "/" && accepts_html(request); }

void protect(Response& response) {
  response.headers.emplace_back("Content-Security-Policy", kPolicy);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
}

Response answer_with(const Asset& asset, const net::Request& request) {
  const bool page = asset.name == kIndex;
  Response response;
  protect(response);
  response.headers.emplace_back("Vary", page ? "Accept, Accept-Encoding" : "Accept-Encoding");
  if (!accepts_gzip(request)) {
    Response refusal = problem_response(
        406, "the files of the dashboard are compressed: send `Accept-Encoding: gzip`, as every browser does");
    std::ranges::move(response.headers, std::back_inserter(refusal.headers));
    return refusal;
  }
  // The name of a file changes with its content; the page is asked for again and names the files of this program.
  response.headers.emplace_back("Cache-Control", page ? "no-cache" : "public, max-age=31536000, immutable");
  response.headers.emplace_back("ETag", asset.tag);
  if (const auto known = request.header("if-none-match"); known && *known == asset.tag) {
    response.status = 304;
    return response;
  }
  response.content_type = type_of(asset.name);
  response.headers.emplace_back("Content-Encoding", "gzip");
  response.body.assign(asset.bytes.begin(), asset.bytes.end());
  return response;
}

}  // namespace

bool wants_asset(const net::Request& request) { return request.path().starts_with(kFolder) || is_page(request); }

std::optional<Response> asset_response(const net::Request& request) {
  if (!wants_asset(request) || (request.method != "GET" && request.method != "HEAD")) return std::nullopt;
  const std::string_view name = is_page(request) ? kIndex : request.path().substr(kFolder.size());
  const std::span<const Asset> all = embedded_assets();
  const auto found = std::ranges::find(all, name, &Asset::name);
  if (found != all.end() && (name != kIndex || is_page(request))) return answer_with(*found, request);
  Response missing =
      problem_response(404, fmt::format("there is no file '{}': it may belong to another version; load the page again",
                                        agent::excerpt(name)));
  protect(missing);
  return missing;
}

}  // namespace stint::http
