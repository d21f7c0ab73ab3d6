/// The name of a run.
#pragma once

#include "domain/system.hpp"

#include <string>
#include <string_view>

namespace stint::domain {

inline constexpr std::size_t kRunIdLength = 12;

/// Letters and digits, 60 bits of chance.
[[nodiscard]] std::string new_run_id(const System& system);
[[nodiscard]] bool is_run_id(std::string_view text) noexcept;

}  // namespace stint::domain
