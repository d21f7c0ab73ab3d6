/// Marks in the store whether the effects of an attempt would be unknown if its node died now: the run would then go in
/// doubt instead of being continued or repeated. There are two reasons for the mark: the store does not have the
/// conversation yet with which another node could continue, and calls that must not be repeated are in flight. Writes
/// are serialised, and each writes what is true when it starts. A write is retried until the store answers. One
/// executor.
#pragma once

#include "pool/store_health.hpp"
#include "stint/notification.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <optional>

namespace stint::pool {

class Carried;

class EffectsMark {
 public:
  EffectsMark(store::Store& store, StoreHealth& health, const Carried& carried)
      : store_(store), health_(health), carried_(carried) {}

  /// The mark that the store has, or may have after an unanswered write.
  [[nodiscard]] bool is_unknown() const noexcept { return unknown_; }

  /// A call was begun, and its end was not reported.
  [[nodiscard]] bool has_open_call() const noexcept { return calls_ > 0; }

  // Each returns true when the store has the current mark; false if another node owns the run, the run was stopped
  // meanwhile or the time was up. Each fails if the store refuses the write for good.
  Task<Result<bool>> begin_without_conversation();
  Task<Result<bool>> conversation_kept();
  Task<Result<bool>> begin_call();
  Task<Result<bool>> end_call();
  /// Sets the mark before the attempt is settled, regardless of the reasons above. Retries until the process exits or
  /// the node is fenced.
  Task<Result<bool>> set(bool unknown);

 private:
  /// `until`: retries until then, or until the run is stopped; none: until the process exits or the node is fenced.
  Task<Result<bool>> update(std::optional<TimePoint> until);
  Task<Result<bool>> write(bool unknown, std::optional<TimePoint> until);
  [[nodiscard]] bool may_repeat(std::optional<TimePoint> until) const;

  store::Store& store_;
  StoreHealth& health_;
  const Carried& carried_;
  bool unknown_ = false;
  bool without_conversation_ = false;
  bool writing_ = false;
  std::uint32_t calls_ = 0;
  Notification written_;
};

}  // namespace stint::pool
