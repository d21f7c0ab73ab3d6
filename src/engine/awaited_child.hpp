/// A run that waits for a child of its own must not hold what the child needs: the child would wait for the parent, and
/// the parent for the child, until the budget ends.
#pragma once

#include "engine/fleet.hpp"

#include <string>

namespace stint::engine {

/// Fails with `conflict` if a run of `agent` (empty: a prompt without an agent) could not begin before `parent` has
/// ended, because `parent` and the running runs above it hold too much of a limit. `parent` empty: nothing to check.
[[nodiscard]] Task<Result<>> check_awaited(Fleet& fleet, std::string parent, std::string agent);

}  // namespace stint::engine
