/// Searches for runs, and batches: actions on all runs that a search finds. The API, the commands and the JSON shapes
/// use these values.
#pragma once

#include "engine/views.hpp"
#include "store/batch.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stint::engine {

struct Search {
  store::Filter filter;  ///< without `before`
  std::string cursor;    ///< `next` of the page before; empty: the first page
  bool total = false;    ///< also count the matches
};

/// How many runs match. Counted up to kTotalMax matches, and over the newest kTotalExaminedMax runs.
struct Total {
  std::uint64_t count = 0;
  bool exact = true;  ///< false: there may be more
};
inline constexpr std::uint64_t kTotalMax = 10'000;
inline constexpr std::uint64_t kTotalExaminedMax = 200'000;
/// One page of a search examines at most so many runs: it may have fewer runs than were asked for although more follow.
inline constexpr std::uint64_t kPageExaminedMax = 200'000;

struct RunPage {
  std::vector<RunView> runs;
  std::string next;  ///< cursor of the next page; empty: this is the last page
  std::optional<Total> total;
};

struct BatchRequest {
  store::BatchAction action = store::BatchAction::cancel;
  store::Filter filter;                 ///< must ask for something
  std::optional<std::uint64_t> expect;  ///< refused if another number of runs matches; none: only with `dry_run`
  bool dry_run = false;                 ///< count only
  std::string key;                      ///< idempotency key; empty: none
};

struct BatchAnswer {
  std::uint64_t matched = 0;
  std::optional<store::Batch> batch;  ///< none: a dry run, or `matched` is not what was expected
  bool created = false;               ///< false: a batch with this idempotency key existed
};

/// Whether the filter asks for anything.
[[nodiscard]] bool is_empty(const store::Filter& filter) noexcept;
/// The filter with the states to which the action applies: of those that it names, or else those that a person would
/// expect. A cancel is for runs that have not ended, a retry for those that have ended without success; runs in doubt
/// and succeeded ones only if they are named. Fails with Errc::invalid if it asks for nothing, or for no such state.
[[nodiscard]] Result<store::Filter> filter_of(const BatchRequest& request);

}  // namespace stint::engine
