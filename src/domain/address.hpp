/// Finds the secrets in an address such as `postgres://user:password@host/name?password=…`. Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace stint::domain {

struct TextSpan {
  std::size_t from = 0, size = 0;

  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

/// The passwords in the address, as written (percent-encoded or not), in order. None if it has no `://`.
[[nodiscard]] std::vector<TextSpan> passwords_in(std::string_view address);

}  // namespace stint::domain
