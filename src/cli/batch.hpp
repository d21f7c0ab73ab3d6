/// Batches on the command line: an action on all runs that a filter matches, with a question before and a report after.
#pragma once

#include "cli/filter_options.hpp"
#include "cli/fleet_place.hpp"
#include "engine/search.hpp"

namespace stint::cli {

struct BatchOptions {
  store::BatchAction action = store::BatchAction::cancel;
  FilterOptions filter;
  bool all = false;   ///< all runs to which the action applies
  bool yes = false;   ///< do not ask
  bool json = false;  ///< print the batch as one JSON object
};

/// Counts, asks, begins a batch and follows it to its end. Asks between two connections to the fleet: a question must
/// not block a reactor. Gives the exit status.
int blocking_run_batch(const domain::System& system, const fleet::ConnectionNeeds& needs, const BatchOptions& options);

inline constexpr char kBatchHelp[] =
    "With filters instead of ids, acts on all runs that match when it begins: shows their number and asks first. The\n"
    "daemon carries it on if this command ends. Exit status: 0 done · 1 some failed, or not confirmed · 5 stopped.";

}  // namespace stint::cli
