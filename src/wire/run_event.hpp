/// A run's events and its end as JSON lines, for `stint run --json`.
#pragma once

#include "engine/foreground.hpp"

#include <string>
#include <string_view>

namespace stint::wire {

[[nodiscard]] std::string run_event_to_json(std::string_view run, const engine::RunEvent& event, Duration elapsed);
/// The last line.
[[nodiscard]] std::string run_result_to_json(std::string_view run, const engine::RunResult& result);

}  // namespace stint::wire
