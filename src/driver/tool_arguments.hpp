/// What a model passes to a tool, put into the words of a command, an address or a header. A value is data: it stays
/// within its word, its part of the address, its line. Pure.
#pragma once

#include "domain/agent.hpp"
#include "stint/error.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::driver {

namespace json = boost::json;

inline constexpr std::size_t kArgumentBytesMax = 1 << 20;  ///< of a call, as JSON
inline constexpr std::size_t kWordBytesMax = 128 << 10;    ///< of one word: the kernel takes no more

/// The arguments of a call as its text has them; an empty text is an empty object. `Errc::invalid` names what is wrong.
[[nodiscard]] Result<json::object> parse_arguments(std::string_view text);

/// Texts stay as they are, lists of plain values have several values, all else is JSON; null is absent.
[[nodiscard]] domain::ArgumentValues argument_values(const json::object& arguments);

/// As many words as the template has. Fails if a word would hold a null byte, or is too long.
[[nodiscard]] Result<std::vector<std::string>> render_argv(const std::vector<std::string>& command,
                                                           const json::object& arguments);
/// Every value is percent-encoded: none adds a path segment, a parameter or a host.
[[nodiscard]] Result<std::string> render_url(const std::string& url, const json::object& arguments);
/// Fails if a value would end the header's line.
[[nodiscard]] Result<std::string> render_header(const std::string& value, const json::object& arguments);

}  // namespace stint::driver
