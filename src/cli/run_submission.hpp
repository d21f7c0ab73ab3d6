/// Turns the options of `stint run` into a submission, and asks for trust where it is needed.
#pragma once

#include "cli/environment.hpp"
#include "cli/run.hpp"
#include "engine/views.hpp"
#include "fleet/fleet.hpp"
#include "fleet/read_project.hpp"

namespace stint::cli {

/// Fails with `invalid` if the command line is wrong.
[[nodiscard]] Result<engine::Submission> submission_of(const RunOptions& options, const project::Snapshot& snapshot);

/// Asks on a terminal whether to trust the checkout, if the submission needs it; refuses without a terminal. True:
/// trust was given just now, so the snapshot must be read again.
[[nodiscard]] Result<bool> blocking_ask_trust(const engine::Submission& submission, const project::Snapshot& snapshot,
                                              const Environment& environment);
/// The same for settings that decide where data goes, and for a checkout that belongs to another user.
[[nodiscard]] Result<project::Checkout> blocking_find_settings_or_ask(const Environment& environment);

}  // namespace stint::cli
