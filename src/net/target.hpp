/// The request target (RFC 9112, section 3.2), split and decoded. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::net {

struct Field {
  std::string_view name;
  std::string_view value;
  friend bool operator==(const Field&, const Field&) = default;
};

struct Target {
  static constexpr std::size_t kPartsMax = 256;  ///< segments, and parameters; more than any route has

  std::string_view authority;              ///< of `http://authority/path`; mostly empty
  std::string_view path;                   ///< as sent, without the query
  std::vector<std::string_view> segments;  ///< decoded: `/runs/a%2Fb` is `runs`, `a/b`; `/` is none
  std::vector<Field> query;                ///< decoded, `+` is a space; in the order received
};

/// Fills `out`, whose views point into `text` and, for parts that had escapes, into `decoded`. Both are reused
/// from request to request. False: not a target that we answer: a broken escape, a NUL, a `.` or `..` segment, neither
/// a path nor a URL nor `*`.
[[nodiscard]] bool parse_target(std::string_view text, std::string& decoded, Target& out);

/// `%41` → `A`, and with `plus` also `+` → space. Nothing for a broken escape.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text, bool plus = false);

}  // namespace stint::net
