/// For other shapes of this folder. Internal to it.
#pragma once

#include "engine/timeline_core.hpp"
#include "wire/values.hpp"

namespace stint::wire {

[[nodiscard]] json::object timeline_value(const engine::Timeline& timeline);

}  // namespace stint::wire
