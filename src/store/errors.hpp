/// Errors that all stores return with the same text.
#pragma once

#include "stint/error.hpp"

#include <string>

namespace stint::store {

[[nodiscard]] Error no_such_run(const std::string& id);
[[nodiscard]] Error no_such_agent(const std::string& name);
/// A run was submitted into the session that one of its ancestors holds.
[[nodiscard]] Error session_of_ancestor(const std::string& session, const std::string& above);
[[nodiscard]] Error no_such_cursor(const std::string& text);
[[nodiscard]] Error cursor_ahead(const std::string& text);

}  // namespace stint::store
