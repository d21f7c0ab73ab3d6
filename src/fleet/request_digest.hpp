/// A digest of a submission, to detect an idempotency key that is reused with a different request.
#pragma once

#include "fleet/fleet.hpp"

#include <string>

namespace stint::fleet {

/// Covers agent, arguments, prompt, session, driver and model as the caller sent them, before any default of the
/// agent's file or the settings. Excludes priority, deadline, delay and budget: a client that repeats a request may
/// send a later deadline.
[[nodiscard]] std::string request_digest(const Submission& submission);

}  // namespace stint::fleet
