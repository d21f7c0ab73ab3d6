/// A run that this node carries, from its claim until the store has answered its settlement. Requests to stop the run
/// go through here and reach its work. One executor.
#pragma once

#include "domain/driver.hpp"
#include "pool/call_limits.hpp"
#include "pool/effects_mark.hpp"
#include "stint/notification.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::pool {

class Carried;
class Recorder;

/// The runs that this node carries, by id and fence: while the settlement of one attempt waits for its answer, this
/// node may already carry the next attempt of the same run. A key refers to the id inside its `Carried`.
class CarriedRuns {
 public:
  using Key = std::pair<std::string_view, store::Fence>;
  [[nodiscard]] const std::map<Key, Carried*>& all() const noexcept { return all_; }
  /// The newest attempt of a run; null: this node carries none.
  [[nodiscard]] Carried* find(std::string_view id) const;
  /// Notified when a run is taken, when its work is over and when it is settled.
  [[nodiscard]] Notification& moved() noexcept { return moved_; }

 private:
  friend class Carried;
  std::map<Key, Carried*> all_;
  Notification moved_;
};

class Carried {
 public:
  enum class Stop : std::uint8_t { none, cancelled, expired, handed_back, fenced };
  struct Parts {
    CarriedRuns& all;
    store::Store& store;
    StoreHealth& health;
  };

  Carried(Parts parts, store::NodeNumber by, const store::Claim& claim);
  ~Carried();
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;

  /// Begins to end the work; a second call skips its grace period. `fenced`: another node owns the run, or will, and
  /// the store rejects what this attempt writes.
  void stop(Stop why, std::string text);
  [[nodiscard]] store::AttemptKey attempt_key() const noexcept { return {run, fence}; }
  [[nodiscard]] Stop stopped() const noexcept { return stop_; }
  [[nodiscard]] bool is_stopped() const noexcept { return stop_ != Stop::none; }
  [[nodiscard]] bool is_fenced() const noexcept { return stop_ == Stop::fenced; }
  [[nodiscard]] const std::string& stop_text() const noexcept { return stop_text_; }
  /// Nothing of the work is alive and its permits are released. Only the settlement is left to do.
  [[nodiscard]] bool is_work_over() const noexcept { return work_over_; }
  void work_is_over();
  [[nodiscard]] bool is_ending() const { return work_ != nullptr && work_->is_ending(); }
  /// What the work waits for: to begin, to end, for the network, or for a permit of a call. None: it does not wait.
  [[nodiscard]] std::optional<domain::WaitReason> waits_for() const;

  /// While this exists, stop() reaches the work and its recorder.
  class Reachable {
   public:
    Reachable(Carried& carried, domain::Work& work, Recorder& recorder);
    ~Reachable();
    Reachable(const Reachable&) = delete;
    Reachable& operator=(const Reachable&) = delete;
    void work_has_ended() noexcept { carried_.work_ = nullptr; }

   private:
    Carried& carried_;
  };

  const std::string id, agent;
  const store::NodeNumber owner;
  const store::RunNumber run;
  const store::Fence fence;
  const std::uint32_t attempt;
  Usage usage;         ///< of all attempts, as far as it was reported
  std::string worker;  ///< of the pool; empty: the run waits for a worker

  // Shared by the steps of the attempt.
  std::unique_ptr<domain::RunMemo> before;             ///< what earlier attempts left; null: there were none
  std::vector<domain::RunInput::BudgetAbove> budgets;  ///< of the runs above, and its own if it bounds tokens or cost
  std::string trace;
  std::string error_before;                 ///< of the previous attempt
  bool resumable = false;                   ///< another node could continue it from what the store has
  bool conversation_may_not_exist = false;  ///< the one to continue: its id was chosen, but it may never have begun
  EffectsMark effects;
  std::vector<const CallWait*> call_waits;                  ///< oldest first
  std::vector<std::string> permits_returned, permits_held;  ///< when its work is over: limits, for the receipt

 private:
  CarriedRuns& all_;
  Stop stop_ = Stop::none;
  std::string stop_text_;
  domain::Work* work_ = nullptr;
  Recorder* recorder_ = nullptr;
  bool work_over_ = false;
};

/// The outcome of an attempt that was stopped.
[[nodiscard]] OutcomeKind outcome_of(Carried::Stop stop) noexcept;

}  // namespace stint::pool
