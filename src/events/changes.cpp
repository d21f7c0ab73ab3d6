#include "events/changes.hpp"

namespace stint::events {

Changes::Subscription::Subscription(Changes& changes, std::string run)
    : changes_(changes), run_(run.empty() ? changes.runs_.end() : changes.runs_.try_emplace(std::move(run)).first) {
  ++changes_.subscribers_;
  if (run_ != changes_.runs_.end()) ++subscribed().subscribers;
}

Changes::Subscription::~Subscription() {
  --changes_.subscribers_;
  if (run_ != changes_.runs_.end() && --subscribed().subscribers == 0) changes_.runs_.erase(run_);
}

void Changes::notify(std::string_view run, Kind kind) {
  ++notified_;
  any_.notify();
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  found->second.notified = notified_;
  found->second.changed.notify();
  if (kind == Kind::any) found->second.may_have_ended.notify();
}

void Changes::notify_all() {
  ++notified_;
  any_.notify();
  for (auto& [run, subscribed] : runs_) {
    subscribed.notified = notified_;
    subscribed.changed.notify();
    subscribed.may_have_ended.notify();
  }
}

Task<> Changes::wait(std::string run, std::uint64_t seen, Duration most) {
  const bool any = run.empty();
  const Subscription place(*this, std::move(run));
  if (any) {
    if (notified_ == seen) (void)co_await any_.wait(any_.count(), most);
    co_return;
  }
  Subscribed& subscribed = place.subscribed();
  // Changes of runs without a subscriber are not tracked: one since `seen` may have been of this run.
  if (notified_ != seen && subscribed.notified == 0) {
    subscribed.notified = notified_;
    co_return;
  }
  if (subscribed.notified > seen) co_return;
  (void)co_await subscribed.changed.wait(subscribed.changed.count(), most);
}

Task<> Changes::EndSubscription::next(Duration most) {
  Notification& ended = subscribed().may_have_ended;
  if (ended.count() == seen_) (void)co_await ended.wait(seen_, most);
  seen_ = ended.count();
}

}  // namespace stint::events
