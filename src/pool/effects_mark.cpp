#include "pool/effects_mark.hpp"

#include "pool/carried.hpp"
#include "pool/recorder.hpp"
#include "pool/store_backoff.hpp"

namespace stint::pool {

Task<Result<bool>> EffectsMark::begin_without_conversation() {
  without_conversation_ = true;
  co_return co_await update(TimePoint::max());
}

Task<Result<bool>> EffectsMark::conversation_kept() {
  without_conversation_ = false;
  co_return co_await update(health_.now() + Recorder::kRefusedMax);
}

Task<Result<bool>> EffectsMark::begin_call() {
  if (carried_.is_stopped()) co_return false;
  // The caller makes the call only if the store has the mark, so it is not open if this coroutine is stopped before.
  struct Opening {
    std::uint32_t& calls;
    bool made = false;
    explicit Opening(std::uint32_t& count) : calls(count) { ++calls; }
    ~Opening() {
      if (!made) --calls;
    }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;
  };
  Opening opening(calls_);
  Result<bool> marked = co_await update(TimePoint::max());
  opening.made = marked && *marked;
  co_return marked;
}

Task<Result<bool>> EffectsMark::end_call() {
  STINT_ASSERT(calls_ > 0 && "a call ends once");
  --calls_;
  co_return co_await update(health_.now() + Recorder::kRefusedMax);
}

Task<Result<bool>> EffectsMark::set(bool unknown) {
  without_conversation_ = unknown;
  calls_ = 0;
  co_return co_await update(std::nullopt);
}

Task<Result<bool>> EffectsMark::update(std::optional<TimePoint> until) {
  while (writing_) co_await written_.wait(written_.count());
  struct Writing {
    EffectsMark& mark;
    explicit Writing(EffectsMark& owner) : mark(owner) { mark.writing_ = true; }
    ~Writing() {
      mark.writing_ = false;
      mark.written_.notify();
    }
  };
  const Writing writing(*this);
  co_return co_await write(without_conversation_ || calls_ > 0, until);
}

Task<Result<bool>> EffectsMark::write(bool unknown, std::optional<TimePoint> until) {
  if (unknown_ == unknown) co_return true;
  StoreBackoff backoff;
  do {
    const auto marked = co_await store_.mark(carried_.owner, carried_.attempt_key(), unknown);
    if (marked) {
      if (*marked) unknown_ = unknown;
      co_return *marked;
    }
    if (marked.error().retry() != Retry::safe) unknown_ = true;  // the store may have written it
    const bool again = StoreBackoff::may_retry(marked.error());
    if (!again && !StoreBackoff::awaits_heartbeat(marked.error())) co_return marked;
    if (again) health_.record(StoreHealth::Call::write, marked);
    if (!co_await backoff.wait(health_)) break;
  } while (may_repeat(until));
  co_return false;
}

bool EffectsMark::may_repeat(std::optional<TimePoint> until) const {
  using Stop = Carried::Stop;
  if (!until) return carried_.stopped() != Stop::fenced;
  return carried_.stopped() == Stop::none && health_.now() < *until;
}

}  // namespace stint::pool
