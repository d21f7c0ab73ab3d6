/// The timeline and the transcript of a run as JSON.
#pragma once

#include "engine/timeline_core.hpp"
#include "engine/transcript_core.hpp"
#include "stint/error.hpp"

#include <string>
#include <string_view>

namespace stint::wire {

[[nodiscard]] std::string to_json(const engine::Timeline& timeline);
[[nodiscard]] Result<engine::Timeline> read_timeline(std::string_view text);
[[nodiscard]] std::string to_json(const engine::Transcript& transcript, std::string_view id);

}  // namespace stint::wire
