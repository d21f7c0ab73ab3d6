/// A client that sends one prompt to an OpenAI-compatible endpoint and prints the answer as it arrives: the smallest
/// possible agent, for demos and tests. A process of its own.
#pragma once

#include <string>
#include <vector>

namespace stint::provider {

inline constexpr char kAskArgument[] = "__ask";

/// `arguments`: host, port, prompt. Returns 0 if the answer was complete.
int ask_main(const std::vector<std::string>& arguments);

}  // namespace stint::provider
