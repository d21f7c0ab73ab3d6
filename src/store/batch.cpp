#include "store/batch.hpp"

#include "domain/run_id.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace stint::store {
namespace {

constexpr std::array kActions = {std::pair{BatchAction::cancel, std::string_view("cancel")},
                                 std::pair{BatchAction::retry, std::string_view("retry")}};
constexpr std::array kStates = {std::pair{BatchState::running, std::string_view("running")},
                                std::pair{BatchState::stopping, std::string_view("stopping")},
                                std::pair{BatchState::stopped, std::string_view("stopped")},
                                std::pair{BatchState::done, std::string_view("done")}};

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& [each, name] : table) {
    if (each == value) return name;
  }
  return {};
}
template <class Value, class Table>
std::optional<Value> value_in(const Table& table, std::string_view wanted) {
  for (const auto& [each, name] : table) {
    if (name == wanted) return each;
  }
  return std::nullopt;
}

}  // namespace

Result<> check_batch(const NewBatch& batch) {
  if (!domain::is_run_id(batch.id)) return fail(Errc::invalid, "'" + batch.id + "' is not the id of a batch");
  if (batch.runs.size() > kBatchRunsMax) {
    return fail(Errc::invalid, "a batch has at most " + std::to_string(kBatchRunsMax) + " runs");
  }
  const auto wrong = std::ranges::find_if_not(batch.runs, [](const std::string& id) { return domain::is_run_id(id); });
  if (wrong != batch.runs.end()) return fail(Errc::invalid, "'" + *wrong + "' is not a run id");
  return {};
}

std::string_view to_string(BatchAction action) noexcept { return name_in(kActions, action); }
std::optional<BatchAction> parse_batch_action(std::string_view name) noexcept {
  return value_in<BatchAction>(kActions, name);
}
std::string_view to_string(BatchState state) noexcept { return name_in(kStates, state); }
std::optional<BatchState> parse_batch_state(std::string_view name) noexcept {
  return value_in<BatchState>(kStates, name);
}

}  // namespace stint::store
