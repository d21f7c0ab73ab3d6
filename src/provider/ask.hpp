/// A client that asks one question of an OpenAI-compatible endpoint and prints the answer as it comes: the smallest
/// agent there is, for demos and tests that have no other. A process of its own.
#pragma once

#include <string>
#include <vector>

namespace stint::provider {

inline constexpr char kAskArgument[] = "__ask";

/// `arguments`: host, port, prompt. 0 if the whole answer came.
int ask_main(const std::vector<std::string>& arguments);

}  // namespace stint::provider
