/// Exit statuses of commands, for runs and errors.
#pragma once

#include "cli/environment.hpp"
#include "store/store.hpp"

namespace stint::cli {

// In addition to those of environment.hpp.
inline constexpr int kExitRefused = 3;  ///< queue full, or daemon draining: retry later
inline constexpr int kExitExpired = 4;  ///< budget used up, or deadline passed
inline constexpr int kExitCancelled = 5;
inline constexpr int kExitInDoubt = 6;  ///< a person has to decide
inline constexpr int kExitBySignal = 128;

/// For a run at rest. A run that waits for a person counts as in doubt.
[[nodiscard]] int exit_status(const store::Run& run) noexcept;
[[nodiscard]] int exit_status(const Error& error) noexcept;

inline constexpr char kExitStatuses[] =
    "Exit status: 0 done · 1 failed · 2 usage · 3 refused · 4 budget or deadline · 5 cancelled · 6 in doubt, or "
    "waiting "
    "for a\nperson · 128+n by signal n.";

}  // namespace stint::cli
