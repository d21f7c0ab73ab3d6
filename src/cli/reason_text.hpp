/// Formats the reason why a run waits. The only place that turns the fields of a reason into text.
#pragma once

#include "domain/wait_reason.hpp"
#include "engine/timeline_core.hpp"

#include <string>

namespace stint::cli {

[[nodiscard]] std::string reason_text(const domain::WaitReason& reason, WallTime now);
[[nodiscard]] std::string shortage_text(const domain::Shortage& shortage);
/// The state of a limit: "gpu: 2 of 2 held by train (pid 4711, 5m); 1 ahead in line".
[[nodiscard]] std::string limit_text(const domain::WaitReason& reason, WallTime now);
/// What the retry rule decided about the end of an attempt. Empty: nothing was to be decided, or it is not known.
[[nodiscard]] std::string verdict_text(const engine::AttemptLane& lane);
/// A holder of a limit: its run with its title and its process on this host, as far as they are known.
[[nodiscard]] std::string holder_text(const domain::LimitEntry& holder, WallTime now);

}  // namespace stint::cli
