#include "pool/carried.hpp"

#include "pool/recorder.hpp"

#include <iterator>
#include <limits>

namespace stint::pool {

OutcomeKind outcome_of(Carried::Stop stop) noexcept {
  return stop == Carried::Stop::expired ? OutcomeKind::over_budget : OutcomeKind::cancelled;
}

Carried* CarriedRuns::find(std::string_view id) const {
  const auto after = all_.upper_bound({id, store::Fence{std::numeric_limits<std::int64_t>::max()}});
  if (after == all_.begin()) return nullptr;
  Carried* const last = std::prev(after)->second;
  return last->id == id ? last : nullptr;
}

Carried::Carried(Parts parts, store::NodeNumber by, const store::Claim& claim)
    : id(claim.id),
      agent(claim.agent),
      owner(by),
      run(claim.run),
      fence(claim.fence),
      attempt(claim.attempt),
      effects(parts.store, parts.health, *this),
      all_(parts.all) {
  const bool fresh = all_.all_.emplace(CarriedRuns::Key(id, fence), this).second;
  STINT_ASSERT(fresh && "an attempt is carried once");
  all_.moved_.notify();
}

Carried::~Carried() {
  all_.all_.erase({id, fence});
  all_.moved_.notify();
}

void Carried::stop(Stop why, std::string text) {
  const bool first = stop_ == Stop::none;
  if (first || why == Stop::fenced) {
    stop_ = why;
    stop_text_ = text;
  }
  if (recorder_ != nullptr) recorder_->hurry();
  if (work_ == nullptr) return;
  work_->end(outcome_of(why), text);
  if (first && why == Stop::fenced) work_->end(outcome_of(why), std::move(text));  // the second call skips the grace
}

void Carried::work_is_over() {
  work_over_ = true;
  all_.moved_.notify();
}

std::optional<domain::WaitReason> Carried::waits_for() const {
  if (work_ == nullptr) return std::nullopt;
  if (auto reason = work_->waits_for()) return reason;
  if (call_waits.empty()) return std::nullopt;
  return call_waits.front()->reason();
}

Carried::Reachable::Reachable(Carried& carried, domain::Work& work, Recorder& recorder) : carried_(carried) {
  carried_.work_ = &work;
  carried_.recorder_ = &recorder;
  // A stop may have been requested before the work was reachable.
  if (carried_.is_stopped()) work.end(outcome_of(carried_.stop_), carried_.stop_text_);
}

Carried::Reachable::~Reachable() {
  carried_.work_ = nullptr;
  carried_.recorder_ = nullptr;
}

}  // namespace stint::pool
