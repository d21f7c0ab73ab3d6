/// What `stint run` was asked for, as a wish for a run.
#pragma once

#include "cli/book.hpp"
#include "cli/run.hpp"
#include "engine/fleet.hpp"

namespace stint::cli {

/// `invalid` for what a person can mend on the command line.
[[nodiscard]] Result<engine::Submission> wish_of(const RunOptions& options, const Reading& reading);

/// What a checkout would run needs a person's word, once: asked on a terminal, refused without one. True: it was given
/// just now, and what was read before is out of date.
[[nodiscard]] Result<bool> blocking_ask_trust(const engine::Submission& wish, const Reading& reading,
                                              const Surroundings& around);
/// The same of settings that decide where data goes, and of a checkout of another user.
[[nodiscard]] Result<ProjectSettings> blocking_find_settings_or_ask(const Surroundings& around);

}  // namespace stint::cli
