/// Checks that the content of a store is consistent: each run with its events, sessions with their order, keys,
/// agents.
#pragma once

#include "store/store.hpp"

namespace stint::store {

struct Audit {
  static constexpr std::size_t kFindingsMax = 100;

  std::uint64_t runs = 0, events = 0;
  std::vector<std::string> findings;  ///< bounded
};

/// Reads the whole store. The store may be in use: a finding is reported only if a second look confirms it.
Task<Result<Audit>> audit(Store& store);

}  // namespace stint::store
