/// How the words and numbers of a run stand in a database, the same in every dialect; and the errors that all stores
/// give alike.
#pragma once

#include "domain/ambient.hpp"
#include "domain/run_state.hpp"
#include "stint/error.hpp"
#include "stint/time.hpp"

#include <string>
#include <string_view>

namespace stint::store {

/// The last two fail on a word that this program does not know; the others are checked by the schema.
[[nodiscard]] domain::Stop read_stop(const std::string& name) noexcept;
[[nodiscard]] domain::OnCrash read_on_crash(const std::string& name) noexcept;
[[nodiscard]] Result<domain::Hold> read_hold(const std::string& name);
[[nodiscard]] Result<domain::RunState> read_state(const std::string& name);

[[nodiscard]] std::int64_t to_ms(Duration duration) noexcept;  ///< up, so that a wait is never too short
[[nodiscard]] std::optional<std::int64_t> maybe_ms(std::optional<Duration> duration) noexcept;
[[nodiscard]] std::optional<std::int64_t> maybe_unix_ms(std::optional<WallTime> time) noexcept;
[[nodiscard]] std::optional<Duration> to_duration(std::optional<std::int64_t> ms) noexcept;
[[nodiscard]] std::optional<std::uint32_t> small(std::optional<std::int64_t> value) noexcept;
[[nodiscard]] std::optional<std::int64_t> wide(std::optional<std::uint32_t> value) noexcept;

/// In UTC: 2026-11-15. Their order is that of the days.
[[nodiscard]] std::string day_of(WallTime time);
[[nodiscard]] std::string to_hex(std::string_view bytes);

[[nodiscard]] Error no_such_run(const std::string& id);
[[nodiscard]] Error no_such_agent(const std::string& name);
/// Of a run that was asked into the session of a run above it.
[[nodiscard]] Error waits_for_itself(const std::string& session, const std::string& above);
[[nodiscard]] Error no_such_cursor(const std::string& text);
[[nodiscard]] Error cursor_ahead(const std::string& text);
/// A cursor that is the number of an event; empty: from the beginning.
[[nodiscard]] Result<std::int64_t> read_cursor(const std::string& text);

}  // namespace stint::store
