// The batches of MemoryRows.
#include "store/memory_rows.hpp"

#include <algorithm>
#include <ranges>

namespace stint::store {

Result<std::optional<BatchRow>> MemoryRows::batch(std::string_view id) {
  for (const auto& [number, entry] : batches_) {
    if (entry.row.batch.id == id) return entry.row;
  }
  return std::nullopt;
}

Result<std::optional<BatchRow>> MemoryRows::batch_of_key(std::string_view key) {
  for (const auto& [number, entry] : batches_) {
    if (entry.row.batch.key == key) return entry.row;
  }
  return std::nullopt;
}

Result<std::vector<BatchRow>> MemoryRows::batches(BatchNumber before, std::size_t most) {
  std::vector<BatchRow> found;
  for (const auto& [number, entry] : std::views::reverse(batches_)) {
    if (found.size() < most && (before.value == 0 || number < before)) found.push_back(entry.row);
  }
  return found;
}

Result<std::vector<BatchRow>> MemoryRows::open_batches() {
  std::vector<BatchRow> found;
  for (const auto& [number, entry] : batches_) {
    if (!entry.row.batch.ended_at) found.push_back(entry.row);
  }
  return found;
}

Result<> MemoryRows::add(const BatchRow& batch, const std::vector<std::string>& runs) {
  const BatchNumber number{++last_batch_.value};
  BatchEntry& entry = batches_[number];
  entry.row = batch;
  entry.row.batch.number = number;
  entry.runs = runs;
  return {};
}

Result<> MemoryRows::put(const BatchRow& batch) {
  batches_.at(batch.batch.number).row = batch;
  return {};
}

Result<std::vector<std::string>> MemoryRows::batch_runs(BatchNumber batch, std::uint64_t at) {
  const std::vector<std::string>& all = batches_.at(batch).runs;
  const std::size_t from = std::min<std::size_t>(at, all.size());
  const std::size_t end = std::min(from + kBatchStepMax, all.size());
  return std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(from),
                                  all.begin() + static_cast<std::ptrdiff_t>(end));
}

Result<> MemoryRows::add_failure(BatchNumber batch, std::uint64_t at, const BatchFailure& failure) {
  batches_.at(batch).failures.emplace(at, failure);
  return {};
}

Result<std::vector<BatchFailure>> MemoryRows::failures(BatchNumber batch) {
  std::vector<BatchFailure> found;
  for (const auto& [at, failure] : batches_.at(batch).failures) found.push_back(failure);
  return found;
}

Result<std::vector<BatchNumber>> MemoryRows::batches_ended_before(WallTime time, std::size_t most) {
  std::vector<BatchNumber> found;
  for (const auto& [number, entry] : batches_) {
    const auto& ended = entry.row.batch.ended_at;
    if (ended && *ended < time && found.size() < most) found.push_back(number);
  }
  return found;
}

Result<> MemoryRows::forget(BatchNumber batch) {
  batches_.erase(batch);
  return {};
}

}  // namespace stint::store
