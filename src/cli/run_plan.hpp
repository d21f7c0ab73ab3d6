/// From what a person typed to what the engine is told: the agent, its arguments, its limits, its budget. Everything
/// that can be refused is refused here, before anything runs.
#pragma once

#include "cli/host_homes.hpp"
#include "cli/run.hpp"
#include "engine/foreground.hpp"

namespace stint::cli {

/// `Errc::invalid` is a mistake of the caller's, `Errc::denied` a checkout that is not trusted.
[[nodiscard]] Result<engine::RunPlan> blocking_plan_run(const RunOptions& options, const HostPlace& place,
                                                        const Surroundings& around, const domain::Ambient& ambient,
                                                        TimePoint now);

}  // namespace stint::cli
