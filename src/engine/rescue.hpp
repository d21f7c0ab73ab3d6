/// Finds processes that a dead node left alive on this host, if it was killed together with its wardens.
#pragma once

#include "domain/driver.hpp"
#include "pool/worker.hpp"
#include "store/store.hpp"

#include <vector>

namespace stint::engine {

/// Which of the attempts that were found on this host must be ended: those that are over according to the store, and
/// those whose warden is gone, whatever the store has. Without its warden an attempt is lost: when the lease of its
/// owner expires, another host begins the next attempt. Attempts that the store does not have belong to another store.
/// Attempts that `here` carries are left alone; it may be null.
Task<std::vector<domain::Survivors::Leftover>> lost_among(store::Store& store,
                                                          std::vector<domain::Survivors::Leftover> found,
                                                          const pool::Worker* here);

/// For commands that only read: kills those of them that no warden is already ending, without waiting.
Task<> kill_survivors(store::Store& store, domain::Survivors& survivors);

}  // namespace stint::engine
