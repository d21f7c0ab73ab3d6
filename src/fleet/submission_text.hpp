/// Checks that a submission consists of text: stores and the API use JSON, which can't hold other bytes.
#pragma once

#include "fleet/fleet.hpp"

namespace stint::fleet {

/// Fails with `invalid` and the name of the first text that is not valid UTF-8 (it would reach the agent changed), or,
/// of texts by which a run is found, that has a NUL character or more bytes than an index takes (domain/bounds.hpp).
[[nodiscard]] Result<> check_text(const Submission& submission);

}  // namespace stint::fleet
