#include "http/answers.hpp"

#include <algorithm>

namespace stint::http {

using namespace std::chrono_literals;

Response json_response(std::string body, unsigned status) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

Response with_retry_after(Response response, const Error& error) {
  const Duration after = error.retry_after().value_or(1s);
  const auto seconds = std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(after).count());
  response.headers.emplace_back("Retry-After", std::to_string(seconds));
  return response;
}

Response no_such(std::string detail, std::string list) {
  return problem_response({.status = 404, .detail = std::move(detail), .list = std::move(list)});
}

Response no_place() {
  return with_retry_after(
      problem_response(503, "All connections are in use; this one is reserved for short answers. Try again later."),
      Error(Errc::full, "").after(2s));
}

Response problem(const Error& error) {
  unsigned status = 500;
  switch (error.code()) {
    case Errc::invalid: status = 422; break;
    case Errc::exhausted:  // a full disk will have room again, a budget won't
      if (error.retry() == Retry::safe) return with_retry_after(problem_response(503, error.describe()), error);
      status = 409;
      break;
    case Errc::conflict: status = 409; break;
    case Errc::denied: status = 403; break;
    case Errc::timed_out: status = 504; break;
    case Errc::full:
    case Errc::closed:
    case Errc::unavailable: return with_retry_after(problem_response(503, error.describe()), error);
    case Errc::cancelled:
    case Errc::failed: break;
  }
  return problem_response(status, error.describe());
}

}  // namespace stint::http
