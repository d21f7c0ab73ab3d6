/// Why a run waits, and the holders and waiters of a limit, as JSON. Of this folder.
#pragma once

#include "domain/wait_reason.hpp"

#include <boost/json.hpp>

namespace stint::wire {

[[nodiscard]] boost::json::object entry_value(const domain::LimitEntry& entry);
[[nodiscard]] boost::json::object shortage_value(const domain::Shortage& shortage);
[[nodiscard]] boost::json::object reason_value(const domain::WaitReason& reason);

}  // namespace stint::wire
