/// Answers that several parts of the API give: JSON, and failures as problem documents with their status.
#pragma once

#include "http/response.hpp"
#include "stint/error.hpp"

#include <string>

namespace stint::http {

[[nodiscard]] Response json_response(std::string body, unsigned status = 200);
/// Adds `Retry-After` from the error, in whole seconds, at least one.
[[nodiscard]] Response with_retry_after(Response response, const Error& error);
/// Turns a failure into a problem document; the only place that maps error codes to statuses.
[[nodiscard]] Response problem(const Error& error);
/// 404: there is no such name. `list`: the path of the API that lists those that exist.
[[nodiscard]] Response no_such(std::string detail, std::string list);
/// Refuses a stream, or a wait for the end of a run, on a reserved connection.
[[nodiscard]] Response no_place();

}  // namespace stint::http
