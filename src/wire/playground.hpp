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
/// How far a request goes on or back: one step if it has no body.
struct Steps {
  std::uint32_t count = 1;
  bool by_event = false;  ///< each goes to the next or the previous event
};
[[nodiscard]] Result<Steps> read_steps(std::string_view body);

}  // namespace stint::wire
