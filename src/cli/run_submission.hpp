/// What `stint run` was asked for, as a submission for a run.
#pragma once

#include "cli/environment.hpp"
#include "cli/run.hpp"
#include "engine/views.hpp"
#include "fleet/fleet.hpp"
#include "fleet/read_project.hpp"

namespace stint::cli {

/// `invalid` for what a person can mend on the command line.
[[nodiscard]] Result<engine::Submission> submission_of(const RunOptions& options, const project::Snapshot& snapshot);

/// What a checkout would run needs a person's word, once: asked on a terminal, refused without one. True: it was given
/// just now, and what was read before is out of date.
[[nodiscard]] Result<bool> blocking_ask_trust(const engine::Submission& submission, const project::Snapshot& snapshot,
                                              const Environment& environment);
/// The same of settings that decide where data goes, and of a checkout of another user.
[[nodiscard]] Result<project::Checkout> blocking_find_settings_or_ask(const Environment& environment);

}  // namespace stint::cli
