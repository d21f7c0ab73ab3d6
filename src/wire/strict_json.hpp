/// JSON of a client's request, read strictly: what two readers could take for different things is refused instead of
/// being read in one of the ways. Of this folder.
#pragma once

#include "wire/values.hpp"

#include <string_view>

namespace stint::wire {

/// Where numbers become text, digit for digit as the client wrote them: `0.5` and `5E-1` are different arguments of a
/// command. An exponent of more than nine digits is refused.
enum class NumbersAsText : std::uint8_t { nowhere, in_args, everywhere };

/// One object. `invalid` says where it stops being JSON, that it is no object, or which member is there twice or has a
/// NUL character in its text, which neither a command's argument nor PostgreSQL can hold.
[[nodiscard]] Result<json::object> parse_strictly(std::string_view text,
                                                  NumbersAsText numbers = NumbersAsText::nowhere);

}  // namespace stint::wire
