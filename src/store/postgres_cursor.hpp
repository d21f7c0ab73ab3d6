/// A position in the feed of PostgreSQL: after event (xid, id). Below the oldest transaction that is still under way
/// nothing can appear later, so that position is enough for a reader of the feed. A snapshot sees more: transactions
/// that have committed while an older one was under way. Its cursor also names what it has seen, until the feed is past
/// all of it.
#pragma once

#include "stint/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::store {

struct PostgresCursor {
  static constexpr std::size_t kSeenBytesMax = 1500;  // some 75 transactions under way; a longer list is left out

  std::uint64_t xid = 0;
  std::int64_t event = 0;
  std::string seen{};  ///< "xmin:xmax:xid,xid…", as PostgreSQL writes a snapshot; empty: nothing beyond the position
  std::uint64_t until = 0;  ///< xmax of `seen`

  /// "xid-id", or "xid-id-seen".
  [[nodiscard]] std::string text() const;
  /// Moves past an event.
  void advance(std::uint64_t to_xid, std::int64_t to_event);
  [[nodiscard]] static Result<PostgresCursor> read(const std::string& text);
  /// Of a snapshot, as PostgreSQL writes it.
  [[nodiscard]] static Result<PostgresCursor> of_snapshot(const std::string& snapshot);
};

}  // namespace stint::store
