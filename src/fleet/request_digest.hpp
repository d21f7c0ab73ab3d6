/// A digest of a submission, to detect an idempotency key that is reused with a different request.
#pragma once

#include "fleet/fleet.hpp"

#include <string>

namespace stint::fleet {

/// Covers agent, arguments, prompt, session, driver and model as the caller sent them, before any default of the
/// agent's file or the settings. Excludes priority, deadline, delay and budget: a client that repeats a request may
/// send a later deadline.
[[nodiscard]] std::string request_digest(const Submission& submission);

/// An id in the form of a run's that follows from both texts.
[[nodiscard]] std::string derived_id(std::string_view of, std::string_view name);

}  // namespace stint::fleet
