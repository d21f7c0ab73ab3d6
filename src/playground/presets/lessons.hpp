/// The C++ of the presets, one function each. Every file shows what stands between `// [show]` and `// [/show]`.
#pragma once

#include "playground/stage.hpp"

namespace stint::playground::lesson {

void three_at_two(Stage& stage);
void stranger_releases(Stage& stage);
void priority_inversion(Stage& stage);
void large_request(Stage& stage);
void limit_or_reuse(Stage& stage);
void owned_timeout(Stage& stage);
void cancelled_head(Stage& stage);
void resize_with_debt(Stage& stage);

}  // namespace stint::playground::lesson
