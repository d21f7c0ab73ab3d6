/// The id of a run.
#pragma once

#include "domain/system.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::domain {

inline constexpr std::size_t kRunIdLength = 12;

/// Lower-case letters and digits, 60 random bits.
[[nodiscard]] std::string new_run_id(const System& system);
/// The id that has these bits; the upper four are ignored.
[[nodiscard]] std::string run_id_of(std::uint64_t bits);
[[nodiscard]] bool is_run_id(std::string_view text) noexcept;

}  // namespace stint::domain
