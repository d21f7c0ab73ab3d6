/// The arguments of a run: words of a command line become values, checked against what the agent declares, before
/// anything runs.
///
/// `key=value` gives a named argument; given again, it becomes a list. Every other word is positional: positional
/// values fill the required arguments that were not named, in order, and then the optional ones. A word is taken for
/// `key=value` only if what stands before the `=` could be an argument's name, so `https://x?a=b` is a value. After a
/// word `--` all are values.
#pragma once

#include "domain/agent.hpp"
#include "stint/error.hpp"

#include <span>
#include <string>

namespace stint::agent {

inline constexpr std::size_t kArgumentWordsMax = 1000;
inline constexpr std::size_t kArgumentBytesMax = 1024 * 1024;  ///< of all values together

/// `Errc::invalid` names the argument, and ends with the usage.
[[nodiscard]] Result<domain::ArgumentValues> bind_arguments(const domain::Agent& agent,
                                                            std::span<const std::string> words);

/// The same for values that have names already: from a request, or from an agent's hand-over.
[[nodiscard]] Result<domain::ArgumentValues> check_arguments(const domain::Agent& agent, domain::ArgumentValues given);

/// "review PR [FOCUS]"
[[nodiscard]] std::string usage(const domain::Agent& agent);

}  // namespace stint::agent
