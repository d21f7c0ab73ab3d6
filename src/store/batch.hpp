/// Batches: one action on many runs, as an object of the store. Its set of runs is fixed when it begins. One living
/// node carries it, in steps; when that node dies, another goes on at the last recorded step (docs/decisions/0030).
#pragma once

#include "domain/numbers.hpp"
#include "domain/system.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::store {

using BatchNumber = domain::Number<struct BatchNumberTag>;  ///< internal to a store; the public name is the id

enum class BatchAction : std::uint8_t { cancel, retry };
[[nodiscard]] std::string_view to_string(BatchAction action) noexcept;
[[nodiscard]] std::optional<BatchAction> parse_batch_action(std::string_view name) noexcept;

enum class BatchState : std::uint8_t {
  running,
  stopping,  ///< no further step begins; the node that carries it has not confirmed that yet
  stopped,   ///< ended before its last run
  done,
};
[[nodiscard]] std::string_view to_string(BatchState state) noexcept;
[[nodiscard]] std::optional<BatchState> parse_batch_state(std::string_view name) noexcept;

inline constexpr std::size_t kBatchRunsMax = 100'000;  ///< of one batch: 1.2 MB of ids
inline constexpr std::size_t kBatchStepMax = 50;       ///< runs between two records of the progress
inline constexpr std::size_t kBatchFailuresMax = 200;  ///< kept of one batch; all are counted
inline constexpr std::size_t kBatchesOpenMax = 100;    ///< that have not ended

struct NewBatch {
  std::string id;   ///< in the form of a run's; made by the caller, who may repeat the call
  std::string key;  ///< idempotency key; empty: none
  BatchAction action = BatchAction::cancel;
  std::string filter;             ///< JSON; the store does not parse it
  std::vector<std::string> runs;  ///< ids, in the order in which they are acted on; at most kBatchRunsMax
};

/// Fails with Errc::invalid: an id is not one, or there are too many.
[[nodiscard]] Result<> check_batch(const NewBatch& batch);

struct BatchFailure {
  std::string run, error;

  friend bool operator==(const BatchFailure&, const BatchFailure&) = default;
};

struct Batch {
  BatchNumber number{};
  std::string id, key;
  BatchAction action = BatchAction::cancel;
  BatchState state = BatchState::running;
  std::string filter;
  /// Each of the `matched` runs is counted in one of the others once it was acted on.
  std::uint64_t matched = 0, done = 0, skipped = 0, failed = 0;
  std::vector<BatchFailure> failures;  ///< the first kBatchFailuresMax; empty in a list
  std::optional<domain::NodeNumber> node;
  WallTime created_at{};
  std::optional<WallTime> ended_at;

  [[nodiscard]] std::uint64_t acted() const noexcept { return done + skipped + failed; }
};

/// The next runs of a batch, for the node that carries it.
struct BatchClaim {
  std::string id;
  BatchAction action = BatchAction::cancel;
  domain::Fence fence{};
  std::uint64_t at = 0;           ///< place of the first one in the set
  std::vector<std::string> runs;  ///< at most kBatchStepMax; empty: the batch must stop
};

/// What came of the first runs of a claim, as many as the sum of its numbers.
struct BatchStep {
  std::uint64_t done = 0, skipped = 0;
  std::vector<BatchFailure> failed;

  [[nodiscard]] std::uint64_t runs() const noexcept { return done + skipped + failed.size(); }
};

}  // namespace stint::store
