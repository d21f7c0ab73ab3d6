/// Helpers of this folder: text of any origin becomes valid JSON.
#pragma once

#include <string>
#include <string_view>

namespace stint::wire {

/// Bytes that are not UTF-8 become U+FFFD: file names may contain any bytes, JSON may not.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace stint::wire
