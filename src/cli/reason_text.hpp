/// Formats the reason why a run waits. The only place that turns the fields of a reason into text.
#pragma once

#include "domain/wait_reason.hpp"

#include <string>

namespace stint::cli {

[[nodiscard]] std::string reason_text(const domain::WaitReason& reason, WallTime now);
[[nodiscard]] std::string shortage_text(const domain::Shortage& shortage);
/// The state of a limit: "gpu: 2 of 2 held by train (pid 4711, 5m); 1 ahead in line".
[[nodiscard]] std::string limit_text(const domain::WaitReason& reason, WallTime now);
/// A holder of a limit: its process on this host, or its run.
[[nodiscard]] std::string holder_text(const domain::LimitEntry& holder, WallTime now);

}  // namespace stint::cli
