/// A request as a handler sees it: complete, within its limits, and admitted. The views point into the request's own
/// storage, which lives until the handler has ended and is then reused for the next request: keep copies, not views.
#pragma once

#include "net/target.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::net {

class Request {
 public:
  Request() = default;
  Request(const Request&) = delete;  // its views would point into the other one
  Request& operator=(const Request&) = delete;

  std::string_view method;     ///< as sent: methods are case-sensitive
  std::string_view target;     ///< as sent
  Target parts;                ///< path, decoded segments, query
  std::vector<Field> headers;  ///< in the order received; values without surrounding space
  std::string body;
  std::string_view host;  ///< with its port; from the target if that names one; empty only in HTTP/1.0
  int version = 11;       ///< 10 or 11
  bool keep_alive = false;
  bool has_body = false;
  bool expects_continue = false;

  std::string_view path() const noexcept { return parts.path; }
  const std::vector<std::string_view>& segments() const noexcept { return parts.segments; }
  /// The first header of that name; names ignore case.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  /// The first parameter of that name.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const noexcept;
  /// The token of `Authorization: Bearer`. A secret: not for logs, errors and answers.
  [[nodiscard]] std::optional<std::string_view> bearer() const noexcept;

 private:
  friend class RequestReader;
  static constexpr std::size_t kKeptBytesMax = 64 << 10;  // of storage, kept between requests

  void clear();

  std::string text_;     // the head
  std::string decoded_;  // parts that had escapes
};

}  // namespace stint::net
