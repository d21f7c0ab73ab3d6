/// The id of a run.
#pragma once

#include "domain/system.hpp"

#include <string>
#include <string_view>

namespace stint::domain {

inline constexpr std::size_t kRunIdLength = 12;

/// Lower-case letters and digits, 60 random bits.
[[nodiscard]] std::string new_run_id(const System& system);
[[nodiscard]] bool is_run_id(std::string_view text) noexcept;

}  // namespace stint::domain
