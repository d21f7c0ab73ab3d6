/// Events of the fleet: changes that belong to no run. The feed sends them between the events of runs, and they carry
/// the same words in every store, in the API, in charts and in docs. Their data is JSON that the stores keep as text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::domain {

inline constexpr std::string_view kLimitResized = "resized";    ///< limit_data: the new capacity of a limit
inline constexpr std::string_view kLimitPaused = "paused";      ///< pause_data: a limit admits nothing for a while
inline constexpr std::string_view kLimitResumed = "resumed";    ///< resume_data: a pause was ended
inline constexpr std::string_view kPoolScaled = "scaled";       ///< scale_data: the target size of a node's pool
inline constexpr std::string_view kPoolDraining = "draining";   ///< drain_data: a node takes no more runs
inline constexpr std::string_view kNodeJoined = "node_joined";  ///< node_data: a node that claims runs enrolled
inline constexpr std::string_view kNodeLeft = "node_left";      ///< node_data: it ended in order
inline constexpr std::string_view kNodeDead = "node_dead";      ///< node_data: its lease was over
inline constexpr std::string_view kReloaded = "reloaded";       ///< reload_data: a node read its project again
inline constexpr std::array kFleetCauses = {kLimitResized, kLimitPaused, kLimitResumed, kPoolScaled, kPoolDraining,
                                            kNodeJoined,   kNodeLeft,    kNodeDead,     kReloaded};

[[nodiscard]] std::string limit_data(std::string_view limit, std::optional<std::uint32_t> capacity);
/// `for_ms` none: until it is resumed.
[[nodiscard]] std::string pause_data(std::string_view limit, std::optional<std::int64_t> for_ms);
[[nodiscard]] std::string resume_data(std::string_view limit, std::uint64_t woken);
[[nodiscard]] std::string scale_data(std::uint64_t workers);
[[nodiscard]] std::string drain_data(std::string_view phase);
[[nodiscard]] std::string node_data(std::string_view label, std::uint64_t runs_lost = 0);
[[nodiscard]] std::string reload_data(std::uint64_t agents);

}  // namespace stint::domain
