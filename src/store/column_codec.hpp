/// Encodes the values of a run as database columns, the same for SQLite and PostgreSQL.
#pragma once

#include "domain/run_state.hpp"
#include "domain/system.hpp"
#include "stint/error.hpp"
#include "stint/time.hpp"
#include "store/store_clock.hpp"

#include <string>
#include <string_view>

namespace stint::store {

[[nodiscard]] std::string_view hold_text(domain::Hold hold) noexcept;  ///< empty: none
[[nodiscard]] std::string_view stop_text(domain::Stop stop) noexcept;  ///< empty: none
/// The last two fail on a word that this program does not know; the schema checks the others.
[[nodiscard]] domain::Stop read_stop(const std::string& name) noexcept;
[[nodiscard]] domain::OnCrash read_on_crash(const std::string& name) noexcept;
[[nodiscard]] Result<domain::Hold> read_hold(const std::string& name);
[[nodiscard]] Result<domain::RunState> read_state(const std::string& name);

[[nodiscard]] std::int64_t to_ms(Duration duration) noexcept;  ///< rounds up, so that a wait is never too short
[[nodiscard]] std::optional<std::int64_t> maybe_ms(std::optional<Duration> duration) noexcept;
[[nodiscard]] std::optional<std::int64_t> maybe_unix_ms(std::optional<WallTime> time) noexcept;
[[nodiscard]] std::optional<Duration> to_duration(std::optional<std::int64_t> ms) noexcept;
[[nodiscard]] std::optional<std::uint32_t> small(std::optional<std::int64_t> value) noexcept;
[[nodiscard]] std::optional<std::int64_t> wide(std::optional<std::uint32_t> value) noexcept;

[[nodiscard]] std::optional<AwakeTime> awake_time(std::optional<std::int64_t> ms) noexcept;
[[nodiscard]] std::int64_t number_of(AwakeTime time) noexcept;
[[nodiscard]] std::optional<std::int64_t> number_of(std::optional<AwakeTime> time) noexcept;

/// In UTC: 2026-11-15. Sorts by day.
[[nodiscard]] std::string day_of(WallTime time);
/// Since 1970.
[[nodiscard]] std::int64_t hour_of(WallTime time);
[[nodiscard]] std::string to_hex(std::string_view bytes);

/// A cursor that is the number of an event; empty: from the beginning.
[[nodiscard]] Result<std::int64_t> read_cursor(const std::string& text);

}  // namespace stint::store
