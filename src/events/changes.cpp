#include "events/changes.hpp"

namespace stint::events {

Changes::Place::Place(Changes& changes, std::string run)
    : changes_(changes), run_(run.empty() ? changes.runs_.end() : changes.runs_.try_emplace(std::move(run)).first) {
  ++changes_.followers_;
  if (run_ != changes_.runs_.end()) ++followed().followers;
}

Changes::Place::~Place() {
  --changes_.followers_;
  if (run_ != changes_.runs_.end() && --followed().followers == 0) changes_.runs_.erase(run_);
}

/// Null: nobody follows it.
Changes::Followed* Changes::tell_followers(std::string_view run) {
  ++told_;
  any_.ring();
  const auto found = runs_.find(run);
  if (found == runs_.end()) return nullptr;
  found->second.told = told_;
  found->second.bell.ring();
  return &found->second;
}

void Changes::tell(std::string_view run, Kind kind) {
  Followed* const followed = tell_followers(run);
  if (followed != nullptr && kind == Kind::any) followed->may_have_ended.ring();
}

void Changes::tell_success(std::string_view run, const std::string& answer) {
  Followed* const followed = tell_followers(run);
  if (followed == nullptr) return;
  followed->answer = std::make_shared<const std::string>(answer);
  followed->may_have_ended.ring();
}

void Changes::tell_all() {
  ++told_;
  any_.ring();
  for (auto& [run, followed] : runs_) {
    followed.told = told_;
    followed.bell.ring();
    followed.may_have_ended.ring();
  }
}

Task<> Changes::wait(std::string run, std::uint64_t seen, Duration most) {
  const bool any = run.empty();
  const Place place(*this, std::move(run));
  if (any) {
    if (told_ == seen) (void)co_await any_.hear(any_.rings(), most);
    co_return;
  }
  Followed& followed = place.followed();
  // Nobody counts for runs that nobody followed: what was told since `seen` may have been of this one.
  if (told_ != seen && followed.told == 0) {
    followed.told = told_;
    co_return;
  }
  if (followed.told > seen) co_return;
  (void)co_await followed.bell.hear(followed.bell.rings(), most);
}

Task<std::shared_ptr<const std::string>> Changes::Ending::next(Duration most) {
  Bell& bell = followed().may_have_ended;
  if (bell.rings() == seen_) (void)co_await bell.hear(seen_, most);
  seen_ = bell.rings();
  co_return followed().answer;
}

}  // namespace stint::events
