#include "store/postgres_cursor.hpp"

#include "store/errors.hpp"

#include <charconv>
#include <limits>
#include <optional>

namespace stint::store {
namespace {

/// Takes a number off the front.
template <class Number>
std::optional<Number> take(std::string_view& text) {
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}
bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

struct Seen {
  std::uint64_t first = 0, until = 0;
};
/// Checks what PostgreSQL would refuse: 0 < xmin <= every listed one, in order, < xmax.
std::optional<Seen> read_seen(std::string_view text) {
  const auto first = take<std::uint64_t>(text);
  if (!first || *first == 0 || !take(text, ':')) return std::nullopt;
  const auto until = take<std::uint64_t>(text);
  if (!until || *until < *first || !take(text, ':')) return std::nullopt;
  for (std::uint64_t before = *first; !text.empty();) {
    const auto each = take<std::uint64_t>(text);
    if (!each || *each < before || *each >= *until) return std::nullopt;
    before = *each + 1;
    if (text.empty()) break;
    if (!take(text, ',') || text.empty()) return std::nullopt;
  }
  return Seen{*first, *until};
}

}  // namespace

std::string PostgresCursor::text() const {
  return std::to_string(xid) + "-" + std::to_string(event) + (seen.empty() ? "" : "-" + seen);
}

void PostgresCursor::advance(std::uint64_t to_xid, std::int64_t to_event) {
  xid = to_xid;
  event = to_event;
  if (xid >= until) seen.clear();
}

Result<PostgresCursor> PostgresCursor::read(const std::string& text) {
  PostgresCursor cursor;
  if (text.empty()) return cursor;
  std::string_view rest = text;
  const auto xid = take<std::uint64_t>(rest);
  const bool dashed = take(rest, '-');
  const auto event = take<std::int64_t>(rest);
  if (!xid || !dashed || !event) return fail(no_such_cursor(text));
  cursor.xid = *xid;
  cursor.event = *event;
  if (rest.empty()) return cursor;
  const auto seen = take(rest, '-') ? read_seen(rest) : std::nullopt;
  if (!seen) return fail(no_such_cursor(text));
  cursor.seen = rest;
  cursor.until = seen->until;
  return cursor;
}

Result<PostgresCursor> PostgresCursor::of_snapshot(const std::string& snapshot) {
  const std::optional<Seen> seen = read_seen(snapshot);
  if (!seen) return fail(Errc::failed, "the database returned the unreadable snapshot '" + snapshot + "'");
  PostgresCursor cursor;
  cursor.xid = seen->first - 1;
  cursor.event = std::numeric_limits<std::int64_t>::max();
  const bool more = seen->until > seen->first && snapshot.size() <= kSeenBytesMax;
  if (more) cursor.seen = snapshot;
  if (more) cursor.until = seen->until;
  return cursor;
}

}  // namespace stint::store
