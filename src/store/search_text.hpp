/// The text by which a run is found: its agent, its title, the values of its arguments, its prompt. All stores keep it
/// beside the run's input and search it for a part, byte by byte: letters of ASCII match without case, all others only
/// themselves, and no character is a wildcard. Pure.
#pragma once

#include <string>
#include <string_view>

namespace stint::store {

inline constexpr std::size_t kSearchTextMax = 4096;  ///< bytes kept of each run; the title and the arguments come first
inline constexpr std::size_t kSearchMax = 200;       ///< characters of a searched text

/// With lower-case letters of ASCII; control characters become spaces.
[[nodiscard]] std::string fold_search(std::string_view text);
/// With lower-case letters of ASCII.
[[nodiscard]] std::string lower_ascii(std::string_view text);
/// `input`: the JSON of a run's input. Parts of it that are not as expected are left out.
[[nodiscard]] std::string search_text(std::string_view agent, std::string_view input);

}  // namespace stint::store
