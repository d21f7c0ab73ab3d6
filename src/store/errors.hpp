/// Errors that all stores give alike.
#pragma once

#include "stint/error.hpp"

#include <string>

namespace stint::store {

[[nodiscard]] Error no_such_run(const std::string& id);
[[nodiscard]] Error no_such_agent(const std::string& name);
/// Of a run that was asked into the session of a run above it.
[[nodiscard]] Error waits_for_itself(const std::string& session, const std::string& above);
[[nodiscard]] Error no_such_cursor(const std::string& text);
[[nodiscard]] Error cursor_ahead(const std::string& text);

}  // namespace stint::store
