/// What both protocols of OpenAI share: their error bodies, their names of rate limits, and their strict schemas.
#pragma once

#include "model/dialects.hpp"

#include <string_view>

namespace stint::model::openai {

inline constexpr std::string_view kOutputName = "output";  // of the schema of an answer

/// Whether the schema keeps the rules of strict mode: every object lists all its properties as required and allows no
/// others. A schema that doesn't is sent without `strict`, for the server would refuse it.
[[nodiscard]] bool is_strict_schema(const json::value& schema);

/// `{"error": …}` in the forms of OpenAI and of compatible servers. Also takes the error itself.
[[nodiscard]] ErrorNote read_error(const json::value& body);

inline constexpr RateNames kRateNames{.prefix = "x-ratelimit-",
                                      .requests = "requests",
                                      .tokens = "tokens",
                                      .input_tokens = {},
                                      .output_tokens = {},
                                      .what_first = false};

}  // namespace stint::model::openai
