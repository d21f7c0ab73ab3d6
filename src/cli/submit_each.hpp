/// `stint submit --each`: submits one run per line of a file or pipe, in batches, and waits while the queue is full.
#pragma once

#include "cli/fleet_place.hpp"
#include "cli/submit.hpp"
#include "engine/views.hpp"

namespace stint::cli {

/// `like`: what all runs share. Returns the exit status: that of the first error, or of the runs with `--wait`.
Task<Result<int>> submit_each(FleetAccess& access, const SubmitOptions& options, engine::Submission like);

}  // namespace stint::cli
