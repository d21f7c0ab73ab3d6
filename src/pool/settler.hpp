/// Settles attempts with the store in batches: one answer of the store serves many runs. Retries until the store
/// answers. A settlement that the store refuses for good is replaced by one without its texts, whose error names the
/// refusal: a run never stays `running` because its result could not be stored. The settler gives up in two cases: the
/// owner was fenced and the store rejects its lease, so the settlement would be stale; or the process exits
/// (StoreHealth::give_up). One executor.
#pragma once

#include "domain/log.hpp"
#include "pool/store_health.hpp"
#include "stint/notification.hpp"
#include "stint/queue.hpp"
#include "store/store.hpp"

#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace stint::pool {

class Settler {
 public:
  static constexpr std::size_t kBatchMax = 256;

  Settler(store::Store& store, StoreHealth& health, domain::Log& log) : store_(store), health_(health), log_(log) {}

  /// How to settle a run that would go on, if the store refuses the text with which its next attempt would continue.
  enum class IfRefused : std::uint8_t {
    lost,    ///< as if its node had died: `on_crash` decides
    failed,  ///< it can't go on: the next attempt would start from the beginning, although this one had effects
  };
  /// Returns the state of the run after its settlement. None: the settlement was stale because another node owns the
  /// run, or it could not be recorded before the process exits.
  Task<std::optional<domain::RunState>> settle(store::NodeNumber owner, store::Settlement settlement,
                                               IfRefused if_refused = IfRefused::lost);
  /// The owner was fenced: settlements of it that the store refuses from now on are not retried.
  void give_up(store::NodeNumber owner) { fenced_.insert(owner); }
  /// Settles what waits, until it is cancelled.
  Task<> run();
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  struct Entry {
    store::NodeNumber owner;
    store::Settlement settlement;
    IfRefused if_refused;
    std::optional<domain::RunState> state;
    Notification done;
    bool refused = false;    // for good; its texts, if any, are removed
    TimePoint not_before{};  // of its next retry: a refused one does not delay the others
    std::uint32_t refusals = 0;
    bool abandoned = false;  // the caller was cancelled
  };
  /// Shared by the caller of settle() and the batch that settles it: a caller may be cancelled meanwhile.
  using SharedEntry = std::shared_ptr<Entry>;
  Task<> settle_batch(std::vector<SharedEntry> batch);
  void replace(Entry& entry, const Error& refusal);
  void retry_later(SharedEntry entry, TimePoint now);

  store::Store& store_;
  StoreHealth& health_;
  domain::Log& log_;
  std::set<store::NodeNumber> fenced_;
  std::vector<SharedEntry> waiting_;
  Notification arrived_;
};

}  // namespace stint::pool
