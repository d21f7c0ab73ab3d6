/// Strict JSON of a client's request: anything that two readers could interpret differently is refused. Internal to
/// this folder.
#pragma once

#include "wire/values.hpp"

#include <string_view>

namespace stint::wire {

/// Numbers become text, digit for digit as the client wrote them: `0.5` and `5E-1` are different arguments of a
/// command. An exponent of more than nine digits is refused.
enum class NumbersAsText : std::uint8_t { nowhere, in_args, everywhere };

/// Reads one object. `invalid` tells where the JSON is malformed, that it is not an object, or which member was sent
/// twice or contains a NUL character, which neither a command's argument nor PostgreSQL can hold.
[[nodiscard]] Result<json::object> parse_strictly(std::string_view text,
                                                  NumbersAsText numbers = NumbersAsText::nowhere);

}  // namespace stint::wire
