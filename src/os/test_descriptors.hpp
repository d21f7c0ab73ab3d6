/// For tests of what happens without file descriptors.
#pragma once

namespace stint::os {

// UBSan looks at memory through a pipe(2); without a descriptor for that, it takes every object for a broken one.
#if __has_feature(undefined_behavior_sanitizer)
inline constexpr bool kSanitizerNeedsDescriptors = true;
#else
inline constexpr bool kSanitizerNeedsDescriptors = false;
#endif

}  // namespace stint::os
