/// Checks that the record of a run is consistent.
#pragma once

#include "store/store.hpp"

namespace stint::store {

/// The first contradiction, in words; empty: none. Checks that events have no gaps, that the last one matches the
/// run, and that each field is set in exactly the states to which it belongs.
[[nodiscard]] std::string contradiction(const RunRecord& record);
/// Whether a store may load it.
[[nodiscard]] Result<> check_record(const RunRecord& record);
/// Another run of its agent has its idempotency key.
[[nodiscard]] Error key_is_taken(const Run& run, const std::string& by);

}  // namespace stint::store
