/// Filters of runs and batches as JSON: requests, answers, and what a command reads from a daemon.
#pragma once

#include "engine/search.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stint::wire {

/// `POST /v1/batches`. `invalid` names the member. The idempotency key is a header.
[[nodiscard]] Result<engine::BatchRequest> read_batch_request(std::string_view body);
[[nodiscard]] std::string to_json(const engine::BatchRequest& request);
/// The form in which a batch keeps its filter: the same text for the same filter.
[[nodiscard]] std::string to_json(const store::Filter& filter);

[[nodiscard]] std::string to_json(const store::Batch& batch);
[[nodiscard]] std::string to_json(const std::vector<store::Batch>& batches, std::string_view next);  ///< of a page
[[nodiscard]] std::string dry_run_to_json(store::BatchAction action, std::uint64_t matched);
[[nodiscard]] Result<store::Batch> read_batch(std::string_view text);
[[nodiscard]] Result<std::vector<store::Batch>> read_batches(std::string_view text);
[[nodiscard]] Result<engine::BatchAnswer> read_batch_answer(std::string_view text);

/// A time of a filter; `invalid` names it.
[[nodiscard]] Result<std::optional<WallTime>> read_filter_time(std::string_view name, std::string_view text);
/// A searched text, as the store wants it; `invalid`: it is empty or too long.
[[nodiscard]] Result<std::string> read_search(std::string_view text);

}  // namespace stint::wire
