// Members of Ledger: batches.
#include "domain/run_id.hpp"
#include "store/errors.hpp"
#include "store/ledger.hpp"

#include <algorithm>

namespace stint::store {
namespace {

bool has_ended(const BatchRow& row) { return row.batch.ended_at.has_value(); }

/// The data of an event about the batch.
std::string json_of(const Batch& batch) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  return "{\"batch\":\"" + batch.id + "\",\"action\":\"" + std::string(to_string(batch.action)) + "\",\"state\":\"" +
         std::string(to_string(batch.state)) + "\",\"matched\":" + number(batch.matched) +
         ",\"done\":" + number(batch.done) + ",\"skipped\":" + number(batch.skipped) +
         ",\"failed\":" + number(batch.failed) + "}";
}

}  // namespace

Result<> Ledger::tell_batch(const Batch& batch, std::string cause) {
  EventRow event;
  event.cause = std::move(cause);
  event.data = json_of(batch);
  event.at = now();
  return rows_.add_event(std::move(event));
}

Result<Batch> Ledger::shown(BatchRow row) {
  row.batch.created_at = clock_.shown(row.batch.created_at);
  row.batch.ended_at = clock_.shown(row.batch.ended_at);
  return std::move(row.batch);
}

Result<Accepted> Ledger::begin_batch(NewBatch&& fresh) {
  STINT_CHECK(check_batch(fresh));
  STINT_TRY(std::optional<BatchRow> known, rows_.batch(fresh.id));
  if (!known && !fresh.key.empty()) {
    STINT_TRY(known, rows_.batch_of_key(fresh.key));
  }
  if (known) return Accepted{known->batch.id, false};
  STINT_TRY(const std::vector<BatchRow> open, rows_.open_batches());
  if (open.size() >= kBatchesOpenMax) return fail(too_many_batches());
  BatchRow row;
  Batch& batch = row.batch;
  batch.id = fresh.id;
  batch.key = std::move(fresh.key);
  batch.action = fresh.action;
  batch.filter = std::move(fresh.filter);
  batch.matched = fresh.runs.size();
  batch.created_at = now();
  if (fresh.runs.empty()) {
    batch.state = BatchState::done;
    batch.ended_at = batch.created_at;
  }
  STINT_CHECK(rows_.add(row, fresh.runs));
  STINT_CHECK(tell_batch(batch, "batch_began"));
  if (fresh.runs.empty()) STINT_CHECK(tell_batch(batch, "batch_ended"));
  return Accepted{std::move(fresh.id), true};
}

Result<std::optional<Batch>> Ledger::batch(const std::string& id) {
  STINT_TRY(std::optional<BatchRow> row, rows_.batch(id));
  if (!row) return std::nullopt;
  STINT_TRY(row->batch.failures, rows_.failures(row->batch.number));
  STINT_TRY(Batch batch, shown(std::move(*row)));
  return std::move(batch);
}

Result<std::vector<Batch>> Ledger::batches(BatchNumber before, std::uint32_t most) {
  STINT_TRY(std::vector<BatchRow> rows, rows_.batches(before, most));
  std::vector<Batch> found;
  for (BatchRow& row : rows) {
    STINT_TRY(found.emplace_back(), shown(std::move(row)));
  }
  return found;
}

Result<std::optional<BatchRow>> Ledger::batch_for(NodeNumber number) {
  STINT_TRY(std::vector<BatchRow> open, rows_.open_batches());
  if (open.empty()) return std::nullopt;
  STINT_TRY(const std::optional<NodeRow> node, rows_.node(number));
  if (!node || node->state != NodeRow::State::live) return std::nullopt;
  for (BatchRow& row : open) {
    if (row.batch.node && *row.batch.node != number) {
      STINT_TRY(const std::optional<NodeRow> carrier, rows_.node(*row.batch.node));
      if (carrier && carrier->state != NodeRow::State::dead) {
        STINT_TRY(const bool lapsed, rows_.is_lapsed(carrier->number, beat_time()));
        if (!lapsed) continue;
      }
    }
    return std::move(row);
  }
  return std::nullopt;
}

Result<bool> Ledger::has_batch_for(NodeNumber node) {
  STINT_TRY(const std::optional<BatchRow> row, batch_for(node));
  return row.has_value();
}

Result<BatchClaim> Ledger::next_of(const BatchRow& row) {
  BatchClaim claim;
  claim.id = row.batch.id;
  claim.action = row.batch.action;
  claim.fence = row.fence;
  claim.at = row.batch.acted();
  if (row.batch.state == BatchState::running) {
    STINT_TRY(claim.runs, rows_.batch_runs(row.batch.number, claim.at));
  }
  return claim;
}

Result<std::optional<BatchClaim>> Ledger::claim_batch(NodeNumber node) {
  STINT_TRY(std::optional<BatchRow> row, batch_for(node));
  if (!row) return std::nullopt;
  row->batch.node = node;
  ++row->fence.value;
  STINT_CHECK(rows_.put(*row));
  STINT_TRY(BatchClaim claim, next_of(*row));
  return std::move(claim);
}

Result<> Ledger::end_batch(BatchRow& row, BatchState state) {
  row.batch.state = state;
  row.batch.ended_at = now();
  row.batch.node.reset();
  STINT_CHECK(rows_.put(row));
  return tell_batch(row.batch, "batch_ended");
}

Result<std::optional<BatchClaim>> Ledger::advance_batch(const BatchClaim& claim, const BatchStep& step) {
  STINT_TRY(std::optional<BatchRow> row, rows_.batch(claim.id));
  if (!row || row->fence != claim.fence || has_ended(*row)) return std::nullopt;
  Batch& batch = row->batch;
  if (batch.acted() == claim.at) {  // otherwise it is repeated
    if (claim.at + step.runs() > batch.matched) return fail(Errc::invalid, "a batch has no so many runs");
    for (std::uint64_t i = 0; i < step.failed.size() && batch.failed + i < kBatchFailuresMax; ++i) {
      STINT_CHECK(rows_.add_failure(batch.number, batch.failed + i, step.failed[i]));
    }
    batch.done += step.done;
    batch.skipped += step.skipped;
    batch.failed += step.failed.size();
  }
  const bool all = batch.acted() == batch.matched;
  if (all || batch.state == BatchState::stopping) {
    STINT_CHECK(end_batch(*row, all ? BatchState::done : BatchState::stopped));
    return std::nullopt;
  }
  STINT_CHECK(rows_.put(*row));
  STINT_TRY(BatchClaim next, next_of(*row));
  return std::move(next);
}

Result<> Ledger::release_batch(const BatchClaim& claim) {
  STINT_TRY(std::optional<BatchRow> row, rows_.batch(claim.id));
  if (!row || row->fence != claim.fence || has_ended(*row)) return {};
  row->batch.node.reset();
  ++row->fence.value;
  return rows_.put(*row);
}

Result<std::optional<Batch>> Ledger::stop_batch(const std::string& id) {
  STINT_TRY(std::optional<BatchRow> row, rows_.batch(id));
  if (!row) return std::nullopt;
  if (row->batch.state == BatchState::running) {
    if (row->batch.node) {
      row->batch.state = BatchState::stopping;
      STINT_CHECK(rows_.put(*row));
    } else {
      STINT_CHECK(end_batch(*row, BatchState::stopped));
    }
  }
  return batch(id);
}

Result<> Ledger::forget_batches(WallTime before, std::size_t most) {
  STINT_TRY(const std::vector<BatchNumber> old, rows_.batches_ended_before(before, most));
  for (const BatchNumber number : old) STINT_CHECK(rows_.forget(number));
  return {};
}

}  // namespace stint::store
