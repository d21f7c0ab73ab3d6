/// What a caller asked for, to be compared with what the same key of idempotency stood for before.
#pragma once

#include "fleet/fleet.hpp"

#include <string>

namespace stint::fleet {

/// A digest of what is to be done: agent, arguments, prompt, session, driver and model, as the caller sent them, before
/// any default of the agent's file or of the settings. When and within which bounds (priority, deadline, delay, budget)
/// is no part of it: a client that asks again may well send a later deadline.
[[nodiscard]] std::string asked(const Submission& submission);

}  // namespace stint::fleet
