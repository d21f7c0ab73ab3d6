/// Names that the two files of Gemini's protocol share.
#pragma once

#include <string_view>

namespace stint::model::gemini {

/// A signature beside a part of the model's message. Newer models refuse a call that comes back without it. An opaque
/// block that has nothing else belongs to the part that follows it.
inline constexpr std::string_view kSignature = "thoughtSignature";

}  // namespace stint::model::gemini
