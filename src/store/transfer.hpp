/// All that a store holds, from one to another, or to a file: agents, limits, runs with their events and output. Not
/// its nodes, and not the fleet's own events.
#pragma once

#include "store/store.hpp"

#include <set>

namespace stint::store {

/// Takes it piece by piece: agents and limits first, then runs in the order in which they came.
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

/// Everything of a store at rest. Conflict: a run is running, or something was changed meanwhile.
Task<Result<Moved>> pour(Store& from, Sink& into);

/// Into another store. What is there already, by its name or id, stays as it is: after a failure the whole may be
/// poured again.
class StoreSink final : public Sink {
 public:
  explicit StoreSink(Store& into) : into_(into) {}

  Task<Result<>> take(AgentEntry agent) override;
  Task<Result<>> take(LimitState limit) override;
  Task<Result<>> take(std::vector<RunRecord> runs) override;
  /// What was not there before.
  [[nodiscard]] const Moved& added() const noexcept { return added_; }

 private:
  Task<Result<>> look();

  Store& into_;
  bool looked_ = false;
  std::set<std::string, std::less<>> agents_, limits_;  // that were there
  Moved added_;
};

}  // namespace stint::store
