/// What the dialects share: JSON without surprises, bounded text, and the guesses that an error's words allow.
#pragma once

#include "driver/dialect.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace stint::driver {

namespace json = boost::json;

std::unique_ptr<Dialect> make_claude();
std::unique_ptr<Dialect> make_codex();
std::unique_ptr<Dialect> make_gemini();
std::unique_ptr<Dialect> make_command();

/// A line's object; nothing if it is none.
[[nodiscard]] std::optional<json::object> parse_object(std::string_view line);
[[nodiscard]] std::string text_at(const json::object& object, std::string_view key);
[[nodiscard]] const json::object* object_at(const json::object& object, std::string_view key);
[[nodiscard]] const json::array* array_at(const json::object& object, std::string_view key);
[[nodiscard]] std::optional<std::int64_t> number_at(const json::object& object, std::string_view key);
[[nodiscard]] double real_at(const json::object& object, std::string_view key);
[[nodiscard]] bool truth_at(const json::object& object, std::string_view key);
/// A counter: never negative, never absurd.
[[nodiscard]] std::int64_t count_at(const json::object& object, std::string_view key);
/// Of dollars; never negative.
[[nodiscard]] std::int64_t micros_of(double dollars);

/// The text's beginning, at most `most` bytes, cut between characters, with "…" if something is missing.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most);
/// The same of its end.
[[nodiscard]] std::string ending(std::string_view text, std::size_t most);
/// In one line, for a message or a list.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t most);
void say(std::vector<Progress>& out, ProgressKind kind, std::string_view text);

[[nodiscard]] bool has(std::string_view text, std::string_view part);  ///< whatever the case, ASCII
/// The first number from 400 to 599 that stands alone in the text.
[[nodiscard]] std::optional<int> status_in(std::string_view text);

/// The wait that a sentence names: "try again in 3 days 2 hours", "Please retry in 38.5s". At most kServerDelayMax.
[[nodiscard]] std::optional<Duration> delay_in(std::string_view text);

/// Whether an error's words say that nothing answered: refused, no such host, no network.
[[nodiscard]] bool is_unreachable(std::string_view words);
/// Tokens of a text, where nobody counted them: an estimate, never nothing.
[[nodiscard]] std::int64_t estimated_tokens(std::string_view text);
/// What a CLI that waits for its provider waits for, for people.
[[nodiscard]] std::string network_wait(std::string_view why);
inline constexpr std::size_t kWaitShown = 200;  // bytes of what a CLI says of its wait for the network

/// An outcome for an error of the provider: status first, then words.
void classify_api_error(Outcome& outcome, std::string_view words);
/// An outcome for a process that ended without a final event. `name` is the CLI's.
[[nodiscard]] Outcome ended_without_result(std::string_view name, const ProcessEnd& end);

}  // namespace stint::driver
