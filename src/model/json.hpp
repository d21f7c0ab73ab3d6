/// Lenient access to JSON of others, and text that is safe to send and to show. For the dialects of this folder.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::model {

namespace json = boost::json;

inline constexpr std::size_t kJsonDepthMax = 200;

/// Nothing if it is not JSON, or nested too deeply. Invalid UTF-8 in strings is accepted.
[[nodiscard]] std::optional<json::value> parse_json(std::string_view text);
[[nodiscard]] std::optional<json::object> parse_object(std::string_view text);
[[nodiscard]] std::string write_json(const json::value& value);

/// What is missing or of another kind is empty, null, none or false. Texts live as long as the object.
[[nodiscard]] std::string_view text_at(const json::object& object, std::string_view key);
[[nodiscard]] const json::object* object_at(const json::object& object, std::string_view key);
[[nodiscard]] const json::array* array_at(const json::object& object, std::string_view key);
[[nodiscard]] bool truth_at(const json::object& object, std::string_view key);
/// A counter: none if it is missing, not a number, negative or absurdly large.
[[nodiscard]] std::optional<std::int64_t> count_at(const json::object& object, std::string_view key);

/// Bytes that are not UTF-8 become U+FFFD: JSON that contains them is refused by providers.
[[nodiscard]] std::string valid_utf8(std::string_view text);
/// In one line, without control characters, at most `most` bytes; cut between characters.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t most);
/// Whether `part` occurs in the text; ignores ASCII case.
[[nodiscard]] bool contains(std::string_view text, std::string_view part);

}  // namespace stint::model
