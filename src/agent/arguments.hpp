/// The arguments of a run: turns the words of a command line into values and checks them against the agent's
/// declaration, before anything runs.
///
/// `key=value` gives a named argument; repeated, it becomes a list. Every other word is positional: positional
/// values fill the required arguments that were not named, in order, and then the optional ones. A word counts as
/// `key=value` only if the part before the `=` is a valid argument name, so `https://x?a=b` is a value. After a
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
