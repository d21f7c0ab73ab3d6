/// Values that several shapes share, to JSON and back. Internal to this folder.
#pragma once

#include "domain/agent.hpp"
#include "domain/outcome.hpp"
#include "stint/error.hpp"

#include <boost/json.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::wire {

namespace json = boost::json;

inline constexpr std::size_t kDepthMax = 32;  // of objects and lists in each other

/// Memory on the stack for one small document. Enough for that of a typical run; what does not fit comes from the heap.
class Scratch {
 public:
  [[nodiscard]] json::storage_ptr memory() noexcept { return &resource_; }

 private:
  std::array<unsigned char, 2048> bytes_;  // not initialized: written before it is read
  json::monotonic_resource resource_{bytes_.data(), bytes_.size()};
};

/// Bytes that are not UTF-8 become U+FFFD. A string in the memory of the object that will contain it is moved there,
/// not copied.
[[nodiscard]] json::string text_value(std::string_view text, json::storage_ptr memory = {});
[[nodiscard]] std::int64_t to_ms(Duration duration);
[[nodiscard]] std::int64_t to_ms(WallTime time);
[[nodiscard]] json::value maybe_time(const std::optional<WallTime>& time);

[[nodiscard]] json::object usage_value(const Usage& usage);
[[nodiscard]] Usage read_usage(const json::value& value);
[[nodiscard]] json::array denials_value(const std::vector<Denial>& denials);
[[nodiscard]] std::vector<Denial> read_denials(const json::value& value);
/// One value is written as a string, several as a list.
[[nodiscard]] json::object args_value(const domain::ArgumentValues& args, json::storage_ptr memory = {});
/// Numbers and booleans become their text. `invalid` names an argument of another type.
[[nodiscard]] Result<domain::ArgumentValues> read_args(const json::value& value);
[[nodiscard]] json::object budget_value(const domain::BudgetSpec& budget);
[[nodiscard]] Result<domain::BudgetSpec> read_budget(const json::value& value);

/// `3`, and also `3.0` and `3e0`, which JSON Schema calls integers as well. Nothing: not a whole number.
[[nodiscard]] std::optional<std::int64_t> whole_number(const json::value& value);

[[nodiscard]] json::array texts_value(const std::vector<std::string>& texts);
/// A list of strings; other elements are passed over.
[[nodiscard]] std::vector<std::string> texts_at(const json::object& object, std::string_view name);

/// A member of an object; empty if it is absent or of another type.
[[nodiscard]] std::string text_at(const json::object& object, std::string_view name);
[[nodiscard]] std::int64_t number_at(const json::object& object, std::string_view name);
[[nodiscard]] std::optional<std::int64_t> maybe_number_at(const json::object& object, std::string_view name);
[[nodiscard]] bool flag_at(const json::object& object, std::string_view name);
[[nodiscard]] std::optional<WallTime> time_at(const json::object& object, std::string_view name);

/// `invalid` tells where the JSON is malformed, or that it is not an object.
[[nodiscard]] Result<json::object> parse_object(std::string_view text, json::storage_ptr memory = {});

}  // namespace stint::wire
