#include "events/changes.hpp"

namespace stint::events {

/// Stands in the list while its frame lives.
class Changes::Place {
 public:
  Place(Changes& changes, std::string run) : changes_(changes), run_(std::move(run)) {
    ++changes_.followers_;
    if (!run_.empty()) ++changes_.runs_[run_].followers;
  }
  ~Place() {
    --changes_.followers_;
    if (run_.empty()) return;
    const auto found = changes_.runs_.find(run_);
    if (--found->second.followers == 0) changes_.runs_.erase(found);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  [[nodiscard]] Followed& run() const { return changes_.runs_.find(run_)->second; }

 private:
  Changes& changes_;
  std::string run_;
};

void Changes::tell(std::string_view run) {
  ++told_;
  any_.ring();
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  found->second.told = told_;
  found->second.bell.ring();
}

Task<> Changes::wait(std::string run, std::uint64_t seen, Duration most) {
  const bool any = run.empty();
  const Place place(*this, std::move(run));
  if (any) {
    if (told_ == seen) (void)co_await any_.hear(any_.rings(), most);
    co_return;
  }
  // Nobody counts for runs that nobody followed: what was told since `seen` may have been of this one.
  if (told_ != seen && place.run().told == 0) {
    place.run().told = told_;
    co_return;
  }
  if (place.run().told > seen) co_return;
  Bell& bell = place.run().bell;
  (void)co_await bell.hear(bell.rings(), most);
}

}  // namespace stint::events
