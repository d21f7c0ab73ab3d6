/// A followed run as JSON lines, for `stint run --json`: its events, its output, its end.
#pragma once

#include "engine/views.hpp"

#include <string>
#include <string_view>

namespace stint::wire {

/// With the reason as fields, and as the text `why` for people.
[[nodiscard]] std::string waiting_line(std::string_view run, const domain::WaitReason& reason, std::string_view why);
[[nodiscard]] std::string text_line(std::string_view run, std::string_view text);
[[nodiscard]] std::string event_line(const store::Event& event, std::uint32_t attempt);
/// The last line.
[[nodiscard]] std::string result_line(const engine::RunView& run, bool refused);

}  // namespace stint::wire
