// Members of PostgresStore: perform what is due, by a clock without jumps.
#include "store/column_codec.hpp"
#include "store/postgres_store.hpp"
#include "store_sql_postgres.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using std::chrono::milliseconds;
namespace query = postgres::query;

}  // namespace

Task<Result<Ticked>> PostgresStore::tick() {
  Ticked ticked;
  STINT_CO_TRY(const WallTime database_now, co_await look_at_clock());
  const bool trusted = trusts_leases(database_now);
  STINT_CO_TRY(const std::int64_t woken, co_await write_number(query::wake, expect(Parameters().number(kBatchMax))));
  STINT_CO_TRY(const std::int64_t expired,
               co_await write_number(query::expire, expect(Parameters().number(kBatchMax))));
  ticked.woken = static_cast<std::uint64_t>(woken);
  ticked.expired = static_cast<std::uint64_t>(expired);
  const bool watched = options_.since_boot() >= clocks_.since + options_.lease;
  const std::optional<std::int64_t> far = watched ? std::optional(to_ms(options_.lease + kFar)) : std::nullopt;
  while (trusted && std::ssize(ticked.dead) < kDeadMax) {
    STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::declare_dead, Parameters().number(far)));
    if (rows.empty()) break;
    ticked.dead.emplace_back(rows.number(0, 0));
    ticked.lost += static_cast<std::uint64_t>(rows.number(0, 1));
  }
  STINT_CO_TRY(const PostgresRows next, co_await read(query::next_due, expect(Parameters())));
  ticked.next = to_duration(next.maybe(0, 0));
  if (ticked.changed()) notification_.notify();
  co_return ticked;
}

std::optional<std::int64_t> PostgresStore::expected_ms() const {
  if (!clock_reading_) return std::nullopt;
  return domain::to_unix_ms(clock_reading_->store +
                            std::chrono::floor<milliseconds>(options_.elapsed() - clock_reading_->ours));
}

/// The reading belongs to a moment between request and answer: a difference within that time is not a jump.
Task<Result<WallTime>> PostgresStore::look_at_clock() {
  while (true) {
    const Duration asked_at = options_.elapsed();
    STINT_CO_TRY(const PostgresRows rows,
                 co_await writing_.run(query::look_at_clock, {}, PostgresClient::Repeat::always));
    const Duration error = (options_.elapsed() - asked_at) / 2;
    const WallTime wall = rows.time(0, 0).value_or(WallTime());
    const ClockReading seen{.store = wall + milliseconds(rows.number(0, 1)),
                            .ours = asked_at + error,
                            .error = error,
                            .moved = rows.number(0, 2)};
    const bool known =
        clock_reading_ &&
        clock_reading_->moved == seen.moved;  // otherwise another process has corrected a jump, so the clock is right
    const bool vouched = rows.flag(0, 3), stale = rows.flag(0, 4);
    const Duration jump =
        known ? (seen.store - clock_reading_->store) - (seen.ours - clock_reading_->ours) : Duration::zero();
    const bool jumped =
        std::chrono::abs(jump) > kJump + error + (clock_reading_ ? clock_reading_->error : Duration::zero());
    if (!jumped || vouched) {  // in the second case the own clock stood still
      clock_reading_ = seen;
      // A process that has just opened the store has no earlier reading.
      if (stale && (known || vouched)) {
        STINT_CO_CHECK(co_await writing_.run(query::vouch_for_clock, Parameters().number(seen.moved)));
      }
      co_return wall;
    }
    if (error > kJump) co_return wall;  // too inexact for a correction; until then expected_ms() is used
    Parameters parameters;
    parameters.number(seen.moved).number(std::chrono::round<milliseconds>(jump).count());
    STINT_CO_CHECK(co_await writing_.run(query::make_up_for_jump, std::move(parameters)));
  }
}

bool PostgresStore::trusts_leases(WallTime database_now) {
  const Duration ours = options_.since_boot();
  if (!clocks_.database) clocks_.since = ours;
  if (clocks_.database) {
    const Duration apart = (database_now - *clocks_.database) - (ours - clocks_.ours);
    if (std::chrono::abs(apart) > options_.lease / 4) clocks_.trusted_from = ours + options_.lease;
  }
  clocks_.database = database_now;
  clocks_.ours = ours;
  return ours >= clocks_.trusted_from;
}

}  // namespace stint::store
