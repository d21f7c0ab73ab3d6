/// What a request says of its own form: which media type it sends and wants, and whether its target is text. Pure.
#pragma once

#include "net/request.hpp"

#include <string>

namespace stint::http {

/// It asks for `text/event-stream`, and does not prefer JSON. Names know no case, parameters do not matter but for `q`.
[[nodiscard]] bool accepts_stream(const net::Request& request);
/// A body is JSON: it is empty, has no type, or is `application/json` or `application/…+json`.
[[nodiscard]] bool sends_json(const net::Request& request);
/// What of the path or the query is no UTF-8, or has a NUL character in it, as a sentence; empty: nothing.
[[nodiscard]] std::string wrong_text(const net::Request& request);

}  // namespace stint::http
