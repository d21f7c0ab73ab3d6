/// Media types of a request's body and of the answer it accepts, and whether its target is text. Pure.
#pragma once

#include "net/request.hpp"

#include <string>

namespace stint::http {

/// It accepts `text/event-stream`, and does not prefer JSON. Names ignore case; of the parameters only `q` counts.
[[nodiscard]] bool accepts_stream(const net::Request& request);
/// It asks for a page: `Accept` names `text/html`, as browsers do.
[[nodiscard]] bool accepts_html(const net::Request& request);
/// It takes a body in the content coding `gzip`.
[[nodiscard]] bool accepts_gzip(const net::Request& request);
/// A body is JSON: it is empty, has no type, or is `application/json` or `application/…+json`.
[[nodiscard]] bool sends_json(const net::Request& request);
/// An error message if the path or the query is not UTF-8 or contains a NUL character; empty: it is valid.
[[nodiscard]] std::string wrong_text(const net::Request& request);

}  // namespace stint::http
