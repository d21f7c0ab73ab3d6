/// Sandboxes and presets of the playground as JSON, and the requests of a page that plays. Durations are `…_ms`, of the
/// sandbox's own clock.
#pragma once

#include "playground/presets.hpp"
#include "playground/sandbox.hpp"
#include "stint/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stint::wire {

/// The presets, and the bounds of a sandbox.
[[nodiscard]] std::string presets_to_json(const std::vector<playground::Preset>& presets);
[[nodiscard]] std::string to_json(std::string_view id, const playground::Played& played);

/// `POST /v1/playground`. `invalid` names the field. Not checked: whether the actions fit the resources.
[[nodiscard]] Result<playground::Sandbox> read_sandbox(std::string_view body);
/// `POST /v1/playground/{id}/act`.
[[nodiscard]] Result<playground::Action> read_action(std::string_view body);
/// `steps` of a request that goes on or back; 1 if it has no body.
[[nodiscard]] Result<std::uint32_t> read_steps(std::string_view body);

}  // namespace stint::wire
