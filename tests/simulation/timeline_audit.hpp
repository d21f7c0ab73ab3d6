/// Checks the timeline of a run: its segments follow each other and add up to its wall time.
#pragma once

#include "pool/run_codec.hpp"
#include "store/store.hpp"

#include <string>
#include <vector>

namespace stint::simulation {

/// What is wrong with the timeline of the finished run; empty: nothing.
[[nodiscard]] std::string audit_timeline(const store::Run& run, const std::vector<store::Event>& events,
                                         const pool::RunCodec& run_codec);

}  // namespace stint::simulation
