/// `stint submit --each`: a run for each line of a file or a pipe, in batches, waiting for room where there is none.
#pragma once

#include "cli/fleet_place.hpp"
#include "cli/submit.hpp"
#include "engine/views.hpp"

namespace stint::cli {

/// `like` is what they share. Gives the exit status: the first thing that went wrong, or that of the runs if they are
/// waited for.
Task<Result<int>> submit_each(FleetAccess& access, const SubmitOptions& options, engine::Submission like);

}  // namespace stint::cli
