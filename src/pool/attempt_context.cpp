#include "pool/attempt_context.hpp"

#include "pool/family.hpp"

#include <utility>

namespace stint::pool {
namespace {

/// While it exists, `why` shows that the attempt waits for a permit of a call.
class ShownWait {
 public:
  ShownWait(Carried& carried, const CallWait& wait) : carried_(carried), wait_(wait) {
    carried_.call_waits.push_back(&wait_);
  }
  ~ShownWait() { std::erase(carried_.call_waits, &wait_); }
  ShownWait(const ShownWait&) = delete;
  ShownWait& operator=(const ShownWait&) = delete;

 private:
  Carried& carried_;
  const CallWait& wait_;
};

constexpr Duration kWaitShown = std::chrono::milliseconds(1);  // a shorter wait is invisible on a timeline

}  // namespace

void AttemptContext::publish(const domain::WorkUpdate& update) {
  parts_.job.beat();
  parts_.recorder.record(update);
  if (update.kind != domain::WorkUpdate::Kind::usage) return;
  Carried& carried = parts_.carried;
  carried.usage = carried.before ? carried.before->usage : Usage();
  carried.usage += update.usage;
  end_if_exceeded(carried, parts_.budget);
  used_.notify();
}

Error AttemptContext::stopped() const {
  return {Errc::cancelled, parts_.carried.is_stopped() ? "the run was stopped: " + parts_.carried.stop_text()
                                                       : "another node has taken the run"};
}

Task<Result<>> AttemptContext::effects_unknown() {
  STINT_CO_TRY(const bool marked, co_await parts_.carried.effects.begin_call());
  if (marked) co_return Result<>();
  co_return fail(stopped());
}

Task<Result<>> AttemptContext::keep_message(std::uint32_t at, std::string body) {
  STINT_CO_TRY(const bool kept, co_await parts_.conversations.keep_message(parts_.carried, {at, std::move(body)}));
  if (kept) co_return Result<>();
  co_return fail(stopped());
}

Task<Result<std::vector<std::string>>> AttemptContext::messages(std::uint32_t from) {
  return parts_.conversations.messages(parts_.carried, from);
}

Task<Result<>> AttemptContext::effects_known() {
  STINT_CO_TRY(const bool marked, co_await parts_.carried.effects.end_call());
  if (marked) co_return Result<>();
  co_return fail(Errc::unavailable, "could not record in the store that the effects are known");
}

Task<Result<Permit>> AttemptContext::acquire(std::string limit, std::uint32_t weight) {
  const Executor& executor = parts_.job.scope().executor();
  const TimePoint since = executor.now();
  Result<Permit> permit;
  {
    const CallWait wait{parts_.call_limits, limit, weight};
    const ShownWait shown(parts_.carried, wait);
    permit = co_await parts_.call_limits.acquire(limit, weight);
  }
  if (!permit) co_return permit;
  if (const Duration waited = executor.now() - since; waited >= kWaitShown) {
    domain::WorkUpdate update;
    update.kind = domain::WorkUpdate::Kind::span;
    update.span =
        domain::Span{.kind = domain::SpanKind::limit, .name = std::move(limit), .length = waited, .usage = {}};
    publish(update);
  }
  co_return permit;
}

}  // namespace stint::pool
