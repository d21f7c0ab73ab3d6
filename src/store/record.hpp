/// Whether a run as it is written down agrees with itself.
#pragma once

#include "store/store.hpp"

namespace stint::store {

/// In words; empty: nothing. Events are without gaps, the last one says what the run says, and what belongs to a state
/// is there in that state and in no other.
[[nodiscard]] std::string contradiction(const RunRecord& record);
/// Whether a store may take it in.
[[nodiscard]] Result<> check_record(const RunRecord& record);
/// Another run of its agent has its key.
[[nodiscard]] Error key_is_taken(const Run& run, const std::string& by);

}  // namespace stint::store
