/// Copies the content of a store to another store or a file: agents, limits, runs with their events and output.
/// Excludes nodes and the events of the fleet.
#pragma once

#include "store/store.hpp"

#include <set>

namespace stint::store {

/// Receives the content piece by piece: agents and limits first, then runs in the order of submission.
class Sink {
 public:
  Sink() = default;
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  virtual Task<Result<>> take(AgentEntry agent) = 0;
  virtual Task<Result<>> take(LimitState limit) = 0;
  virtual Task<Result<>> take(std::vector<RunRecord> runs) = 0;
};

struct Moved {
  std::uint64_t agents = 0, limits = 0, runs = 0, events = 0;

  friend bool operator==(const Moved&, const Moved&) = default;
};

/// Copies a store at rest. Conflict: a run is running, or the store changed during the copy.
Task<Result<Moved>> copy_store(Store& from, Sink& into);

/// Writes to another store. Agents, limits and runs that exist there stay as they are, so a failed transfer can be
/// repeated as a whole.
class StoreSink final : public Sink {
 public:
  explicit StoreSink(Store& into) : into_(into) {}

  Task<Result<>> take(AgentEntry agent) override;
  Task<Result<>> take(LimitState limit) override;
  Task<Result<>> take(std::vector<RunRecord> runs) override;
  /// What was new in the target.
  [[nodiscard]] const Moved& added() const noexcept { return added_; }

 private:
  Task<Result<>> look();

  Store& into_;
  bool looked_ = false;
  std::set<std::string, std::less<>> agents_, limits_;  // that existed before
  Moved added_;
};

}  // namespace stint::store
