/// Tells the store whether the effects of an attempt would be unknown if its node died now: the run then goes in doubt
/// instead of being continued or repeated. There are two reasons: the conversation by which another node could continue
/// is not stored yet, and calls that must not be repeated are under way. Writes go one after the other, each with what
/// is true when its turn comes. Repeats a write until the store answers. One executor.
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

  /// As far as is known, the store has it so.
  [[nodiscard]] bool is_unknown() const noexcept { return unknown_; }

  /// A call was begun, and its end was not reported.
  [[nodiscard]] bool has_open_call() const noexcept { return calls_ > 0; }

  // Each returns true when the store has what is true now, false if the run has another owner, was stopped meanwhile or
  // the time was up, and fails if the store refuses it for good.
  Task<Result<bool>> begin_without_conversation();
  Task<Result<bool>> conversation_kept();
  Task<Result<bool>> begin_call();
  Task<Result<bool>> end_call();
  /// Before the attempt is settled: whatever the reasons were. Repeated until the node leaves or was fenced.
  Task<Result<bool>> set(bool unknown);

 private:
  /// `until`: repeated until then, or until the run is told to stop; none: until the node leaves or was fenced.
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
