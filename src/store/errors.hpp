/// Errors that all stores return with the same text.
#pragma once

#include "stint/error.hpp"

#include <cstdint>
#include <string>

namespace stint::store {

[[nodiscard]] Error no_such_run(const std::string& id);
[[nodiscard]] Error no_such_agent(const std::string& name);
/// A run was submitted into the session that one of its ancestors holds.
[[nodiscard]] Error session_of_ancestor(const std::string& session, const std::string& above);
/// A message of a conversation was stored without the one before it.
[[nodiscard]] Error message_missing(std::uint32_t at);
[[nodiscard]] Error conversation_too_long();
[[nodiscard]] Error too_many_batches();
[[nodiscard]] Error no_such_cursor(const std::string& text);
[[nodiscard]] Error cursor_ahead(const std::string& text);

}  // namespace stint::store
