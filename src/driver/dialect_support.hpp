/// Shared by the dialects: lenient JSON access, bounded text, and the classification of errors by their wording.
#pragma once

#include "driver/dialect.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace stint::driver {

namespace json = boost::json;

/// The variables of the driver's descriptor that switch off its own retries.
void add_retry_off(Launch& launch, std::string_view driver);

/// The JSON object of a line; none if it is not one.
[[nodiscard]] std::optional<json::object> parse_object(std::string_view line);
[[nodiscard]] std::string text_at(const json::object& object, std::string_view key);
[[nodiscard]] const json::object* object_at(const json::object& object, std::string_view key);
[[nodiscard]] const json::array* array_at(const json::object& object, std::string_view key);
[[nodiscard]] std::optional<std::int64_t> number_at(const json::object& object, std::string_view key);
[[nodiscard]] double real_at(const json::object& object, std::string_view key);
[[nodiscard]] bool truth_at(const json::object& object, std::string_view key);
/// A counter: never negative; 0 if it is missing or out of range.
[[nodiscard]] std::int64_t count_at(const json::object& object, std::string_view key);
/// Dollars in millionths; never negative.
[[nodiscard]] std::int64_t micros_of(double dollars);

/// The beginning of the text, at most `most` bytes, cut between characters, with "…" if it was cut.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most);
/// The same for the end of the text.
[[nodiscard]] std::string ending(std::string_view text, std::size_t most);
/// The text in one line, for a message or a list.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t most);
/// Appends to `out`; the text is cut at Progress::kTextMax.
void emit(std::vector<Progress>& out, ProgressKind kind, std::string_view text);

[[nodiscard]] bool has(std::string_view text, std::string_view part);  ///< ignores ASCII case
/// The first number from 400 to 599 that stands alone in the text.
[[nodiscard]] std::optional<int> status_in(std::string_view text);

/// The delay in a sentence: "try again in 3 days 2 hours", "Please retry in 38.5s". At most kServerDelayMax.
[[nodiscard]] std::optional<Duration> delay_in(std::string_view text);

/// Whether the wording of an error means that there was no connection: refused, no such host, no network.
[[nodiscard]] bool is_unreachable(std::string_view words);
/// Estimates the tokens of a text for which no count was reported; at least 1.
[[nodiscard]] std::int64_t estimated_tokens(std::string_view text);
/// Why a CLI waits for its provider, for people.
[[nodiscard]] std::string network_wait(std::string_view why);
inline constexpr std::size_t kShownMax = 200;   // bytes of a name, an id or a call that events and messages show
inline constexpr std::size_t kCallsMax = 64;    // tool calls whose results are outstanding
inline constexpr std::size_t kWaitShown = 200;  // bytes of the reason that a CLI gives for a wait

/// Classifies an error of the provider: by its status first, then by its wording.
void classify_api_error(Outcome& outcome, std::string_view words);
/// The outcome of a process that ended without a final event. `name` is that of the CLI.
[[nodiscard]] Outcome ended_without_result(std::string_view name, const ProcessEnd& end);

}  // namespace stint::driver
