/// Whether what a store holds agrees with itself: each run with its events, sessions with their order, keys, agents.
#pragma once

#include "store/store.hpp"

namespace stint::store {

struct Audit {
  static constexpr std::size_t kFindingsMax = 100;

  std::uint64_t runs = 0, events = 0;
  std::vector<std::string> findings;  ///< at most so many
};

/// Walks over all of it. It may be in use: what looks wrong is looked at again.
Task<Result<Audit>> audit(Store& store);

}  // namespace stint::store
