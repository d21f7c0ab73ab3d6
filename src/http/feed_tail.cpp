#include "http/feed_tail.hpp"

#include "http/event_stream.hpp"
#include "wire/fleet.hpp"

#include <algorithm>

namespace stint::http {

/// One stream reads. If it is stopped before the end, a waiting one takes over.
class FeedTail::Reading {
 public:
  explicit Reading(FeedTail& tail) noexcept : tail_(tail) { tail_.reading_ = true; }
  ~Reading() {
    tail_.reading_ = false;
    tail_.moved_.notify();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  FeedTail& tail_;
};

std::string FeedTail::encode(const store::Event& event) {
  return event_text({.id = event.cursor, .name = event.cause, .data = wire::to_json(event)});
}

std::optional<FeedTail::Piece> FeedTail::after(const std::string& cursor) const {
  const auto place = places_.find(cursor);
  if (place == places_.end() || place->second == added_) return std::nullopt;
  Piece piece;
  for (std::size_t i = events_.size() - (added_ - place->second); i < events_.size(); ++i)
    piece.text += events_[i].text;
  piece.cursor = events_.back().cursor;
  return piece;
}

void FeedTail::clear() {
  events_.clear();
  places_.clear();
  end_.clear();
}

void FeedTail::add(const store::FeedPage& page) {
  for (const store::Event& event : page.events) {
    events_.push_back({encode(event), event.cursor});
    places_[event.cursor] = ++added_;
    if (events_.size() <= kEventsMax) continue;
    places_.erase(events_.front().cursor);
    events_.pop_front();
  }
  end_ = page.cursor;
  if (!page.events.empty()) ++version_;
}

/// Begins at the end of the feed. Streams look for themselves once: what came before this moment is not here.
Task<Result<>> FeedTail::start() {
  clear();
  STINT_CO_TRY(const store::FeedPage now, co_await fleet_.feed(std::string(store::kFeedNow), 1));
  end_ = now.cursor;
  ++version_;
  co_return Result<>();
}

Task<Result<>> FeedTail::read(Duration most) {
  const Reading reading(*this);
  const Duration idle = elapsed_() - read_at_;
  if (end_.empty() || idle > kIdleMax) {
    STINT_CO_CHECK(co_await start());
    read_at_ = elapsed_();
    co_return Result<>();
  }
  if (idle < kReadGap) co_await sleep_for(kReadGap - idle);
  changes_seen_ = co_await fleet_.changed("", changes_seen_, std::min(most, kPollEvery));
  read_at_ = elapsed_();
  for (bool more = true; more;) {
    const auto page = co_await fleet_.feed(end_, kPage);
    if (!page || page->pruned) clear();
    if (!page) co_return fail(page.error());
    if (page->pruned) break;
    add(*page);
    more = page->events.size() == kPage;
  }
  co_return Result<>();
}

Task<Result<>> FeedTail::wait(std::uint64_t seen, Duration most) {
  const Duration until = elapsed_() + most;
  for (Duration left = most; version_ == seen && left > Duration::zero(); left = until - elapsed_()) {
    if (reading_) {
      (void)co_await moved_.wait(moved_.count(), left);
    } else {
      STINT_CO_CHECK(co_await read(left));
    }
  }
  co_return Result<>();
}

}  // namespace stint::http
