/// What a process that died may have left alive on this host, if it was killed together with its wardens.
#pragma once

#include "domain/driver.hpp"
#include "pool/worker.hpp"
#include "store/store.hpp"

#include <cstdint>

namespace stint::engine {

/// Ends what is alive on this host of attempts that are over by what the store says, and returns when it is gone. What
/// the store does not know is somebody else's. `here` carries attempts that need no question; it may be null. How many
/// processes it found.
Task<std::uint32_t> end_survivors(store::Store& store, domain::Survivors& survivors, const pool::Worker* here);

}  // namespace stint::engine
