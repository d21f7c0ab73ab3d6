/// A run that this node has: from the claim until the store has answered what became of it. Requests to stop it go
/// through here; the work then ends in its own way. One executor.
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

/// By id and fence: while the store's answer to the end of one attempt is on its way, the next may be here already.
/// The id is that of the run itself, as long as it is carried.
class CarriedRuns {
 public:
  using Key = std::pair<std::string_view, std::int64_t>;
  [[nodiscard]] const std::map<Key, Carried*>& all() const noexcept { return all_; }
  /// The newest attempt of a run; null: none is here.
  [[nodiscard]] Carried* find(std::string_view id) const;
  /// Notified when a run was taken or let go, or its work is over.
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

  /// Begins to end it; a second call hurries. `fenced`: another node has the run, or will: nothing this attempt reports
  /// counts.
  void stop(Stop why, std::string text);
  [[nodiscard]] Stop stopped() const noexcept { return stop_; }
  [[nodiscard]] bool is_stopped() const noexcept { return stop_ != Stop::none; }
  [[nodiscard]] bool is_fenced() const noexcept { return stop_ == Stop::fenced; }
  [[nodiscard]] const std::string& stop_text() const noexcept { return stop_text_; }
  /// Nothing of its work is alive, and its permits are free: it only has to be recorded.
  [[nodiscard]] bool is_work_over() const noexcept { return work_over_; }
  void work_is_over();
  [[nodiscard]] bool is_ending() const { return work_ != nullptr && work_->is_ending(); }
  /// What its work waits for: to begin, to end, for the network, or for a permit of a call. None: it is at work.
  [[nodiscard]] std::optional<domain::WaitReason> waits_for() const;

  /// A stop reaches work and recorder as long as this exists.
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
  const std::int64_t fence;
  const std::uint32_t attempt;
  Usage usage;         ///< of all attempts, as far as is known
  std::string worker;  ///< of the pool; empty: it waits for one

  // What the steps of the attempt share.
  std::unique_ptr<domain::RunMemo> before;             ///< what earlier attempts left; null: there were none
  std::vector<domain::RunInput::BudgetAbove> budgets;  ///< its own as well, if tokens or cost are bounded
  std::string trace;
  std::string error_before;            ///< of the attempt before
  bool resumable = false;              ///< by other nodes, from what the store has
  bool conversation_may_miss = false;  ///< the one to continue: its id was chosen, and perhaps it never began
  EffectsMark effects;
  std::vector<const CallWait*> call_waits;  ///< the earliest first

 private:
  CarriedRuns& all_;
  Stop stop_ = Stop::none;
  std::string stop_text_;
  domain::Work* work_ = nullptr;
  Recorder* recorder_ = nullptr;
  bool work_over_ = false;
};

/// What the outcome of a stopped attempt is.
[[nodiscard]] OutcomeKind outcome_of(Carried::Stop stop) noexcept;

}  // namespace stint::pool
