/// What a process that died may have left alive on this host, if it was killed together with its wardens.
#pragma once

#include "domain/driver.hpp"
#include "pool/worker.hpp"
#include "store/store.hpp"

#include <vector>

namespace stint::engine {

/// Which of the attempts that were found on this host must not go on: those that are over by what the store says, and
/// those whose warden is gone, whatever the store says. A warden that is gone means that the attempt is lost; the lease
/// of its owner may last a while, and then another host begins the next attempt. What the store does not know belongs
/// to another store. `here` carries attempts that need no question; it may be null.
Task<std::vector<domain::Survivors::Leftover>> lost_among(store::Store& store,
                                                          std::vector<domain::Survivors::Leftover> found,
                                                          const pool::Worker* here);

/// For a command that only reads: kills those of them that no warden is ending already, and waits for nothing.
Task<> kill_survivors(store::Store& store, domain::Survivors& survivors);

}  // namespace stint::engine
