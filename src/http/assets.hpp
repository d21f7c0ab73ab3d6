/// The files of the dashboard, which the program contains (web/dist, embedded by cmake/Embed.cmake): a page at `/` for
/// clients that ask for HTML, and everything it loads at `/assets/`. They hold no data and need no token. The page
/// loads nothing from elsewhere, and its policy forbids that.
#pragma once

#include "http/response.hpp"
#include "net/request.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace stint::http {

struct Asset {
  std::string_view name;
  std::string_view tag;  ///< an ETag, with its quotes
  std::span<const unsigned char> bytes;
};
/// Compressed with gzip.
[[nodiscard]] std::span<const Asset> embedded_assets() noexcept;

/// Whether the path is that of the page or of a file of it.
[[nodiscard]] bool wants_asset(const net::Request& request);
/// Nothing: the request is not for an asset. 404: there is no such file. 406: the client takes no gzip.
[[nodiscard]] std::optional<Response> asset_response(const net::Request& request);

}  // namespace stint::http
