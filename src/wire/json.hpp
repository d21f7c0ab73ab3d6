/// Helpers of this folder: text from files becomes JSON that every reader takes.
#pragma once

#include <string>
#include <string_view>

namespace stint::wire {

/// Bytes that are no UTF-8 become U+FFFD: names of files may be anything, JSON may not.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// `"text"`, escaped: for short answers, for which a tree of values is too much.
void append_text(std::string& out, std::string_view text);

}  // namespace stint::wire
