/// Hands what became of attempts to the store, all that has gathered at once: one answer of the store then serves many
/// runs. Asks again until there is an answer. A settlement that the store refuses for good is replaced by one without
/// its texts, which says so: a run never stays `running` because its end could not be kept. Gives up only when the
/// owner was fenced and the store says that its lease is over, for then it would count for nothing, or when the process
/// leaves (StoreHealth::give_up). One executor.
#pragma once

#include "domain/log.hpp"
#include "pool/store_health.hpp"
#include "stint/notification.hpp"
#include "stint/queue.hpp"
#include "store/store.hpp"

#include <optional>
#include <set>
#include <vector>

namespace stint::pool {

class Settler {
 public:
  static constexpr std::size_t kBatchMax = 256;

  Settler(store::Store& store, StoreHealth& health, domain::Log& log) : store_(store), health_(health), log_(log) {}

  /// What becomes of a run that would have gone on, if the store refuses the text by which the next attempt continues.
  enum class IfRefused : std::uint8_t {
    lost,    ///< as if its process had died: `on_crash` decides
    failed,  ///< it would begin anew, although it had effects
  };
  /// The state that the run has now; none: others have taken it, and what was said counts for nothing, or nothing could
  /// be recorded before the process leaves.
  Task<std::optional<domain::RunState>> settle(store::NodeNumber owner, store::Settlement settlement,
                                               IfRefused if_refused = IfRefused::lost);
  /// The owner was fenced: what the store refuses to it from now on is not asked again.
  void give_up(store::NodeNumber owner) { fenced_.insert(owner); }
  /// Works for them, until it is stopped.
  Task<> run();
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  struct Entry {
    store::NodeNumber owner;
    store::Settlement settlement;
    IfRefused if_refused;
    std::optional<domain::RunState> state;
    Notification done;
    bool refused = false;    // for good, and replaced, if it had texts
    TimePoint not_before{};  // one that is refused does not hold up the others
    std::uint32_t refusals = 0;
  };
  Task<> settle_batch(std::vector<Entry*> batch);
  void replace(Entry& entry, const Error& refusal);
  void ask_later(Entry& entry, TimePoint now);

  store::Store& store_;
  StoreHealth& health_;
  domain::Log& log_;
  std::set<store::NodeNumber> fenced_;
  std::vector<Entry*> waiting_;  // in the frames of who waits
  Notification arrived_;
};

}  // namespace stint::pool
