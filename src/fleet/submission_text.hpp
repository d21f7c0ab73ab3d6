/// What a submission says has to be text: stores and the API keep JSON, which can't hold other bytes.
#pragma once

#include "fleet/fleet.hpp"

namespace stint::fleet {

/// Fails with `invalid` and the name of the first text that is not valid UTF-8 and would reach the agent changed, or
/// by which a run is found and which has a NUL character or more bytes than an index takes (domain/bounds.hpp).
[[nodiscard]] Result<> check_text(const Submission& submission);

}  // namespace stint::fleet
