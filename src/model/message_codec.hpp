/// A message of a conversation as JSON text, for the store. Strict: what this version does not know is refused, because
/// a conversation that loses a part would be continued wrongly.
#pragma once

#include "model/conversation.hpp"
#include "stint/error.hpp"

#include <string>
#include <string_view>

namespace stint::model {

/// Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string to_json(const Message& message);
/// Errc::invalid names the field that is missing, wrong, or of a newer version.
[[nodiscard]] Result<Message> read_message(std::string_view json);

}  // namespace stint::model
