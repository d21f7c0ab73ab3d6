/// The end of the feed, read once for all streams: a hundred open dashboards cost one query, not a hundred. Keeps the
/// last events, already encoded.
///
/// A stream that is not at one of these events reads the store itself, each time that something was added here, until
/// it has caught up. One of the waiting streams reads for all; if it leaves, another one goes on. Own thread only.
#pragma once

#include "fleet/fleet.hpp"
#include "stint/notification.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

namespace stint::http {

class FeedTail {
 public:
  static constexpr std::size_t kEventsMax = 1000;
  static constexpr std::uint32_t kPage = 200;
  static constexpr Duration kPollEvery = std::chrono::seconds(1);       // for events of other processes
  static constexpr Duration kReadGap = std::chrono::milliseconds(100);  // between two readings while much happens
  static constexpr Duration kIdleMax = std::chrono::seconds(5);         // without streams for so long, it starts over

  FeedTail(fleet::Fleet& fleet, std::function<Duration()> elapsed) : fleet_(fleet), elapsed_(std::move(elapsed)) {}

  /// Events after a cursor, encoded for a stream.
  struct Piece {
    std::string text;
    std::string cursor;  ///< of the last of them
  };
  /// None: the cursor is not here, or nothing follows it.
  [[nodiscard]] std::optional<Piece> after(const std::string& cursor) const;
  /// Whether the cursor is here: then nothing can follow it that after() does not return.
  [[nodiscard]] bool has(const std::string& cursor) const { return places_.contains(cursor); }
  /// Grows when events may have been added.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  /// Waits until the version exceeds `seen`, at most `most`. May return early.
  Task<Result<>> wait(std::uint64_t seen, Duration most);

  /// The event as a stream sends it.
  [[nodiscard]] static std::string encode(const store::Event& event);

 private:
  class Reading;
  Task<Result<>> read(Duration most);
  Task<Result<>> start();
  void add(const store::FeedPage& page);
  void clear();

  fleet::Fleet& fleet_;
  std::function<Duration()> elapsed_;
  std::deque<Piece> events_;                               // each with its cursor
  std::unordered_map<std::string, std::uint64_t> places_;  // by cursor: how many events were added up to it
  std::uint64_t added_ = 0;
  std::string end_;  // where the next reading begins; empty: it starts over
  std::uint64_t version_ = 0, changes_seen_ = 0;
  Duration read_at_{};
  bool reading_ = false;
  Notification moved_;
};

}  // namespace stint::http
