/// What a list shows of a run's input and result, which may have megabytes each: one member of their JSON. Pure.
#pragma once

#include <string>
#include <string_view>

namespace stint::store {

inline constexpr std::string_view kBriefInput = "title", kBriefResult = "usage";

/// The text itself if it has at most `bytes_max` bytes, or if that is 0. Else an object with that member alone, or with
/// none if the text has no such member.
[[nodiscard]] std::string brief_text(std::string text, std::string_view member, std::size_t bytes_max);

/// The JSON of one member of an object; empty: it has no such member. A view of `json`.
[[nodiscard]] std::string_view member_text(std::string_view json, std::string_view member);

}  // namespace stint::store
