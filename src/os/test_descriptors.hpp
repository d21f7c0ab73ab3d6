/// For tests without free file descriptors.
#pragma once

namespace stint::os {

// UBSan checks memory through a pipe(2); without a descriptor for that, it reports every object as broken.
#if __has_feature(undefined_behavior_sanitizer)
inline constexpr bool kSanitizerNeedsDescriptors = true;
#else
inline constexpr bool kSanitizerNeedsDescriptors = false;
#endif

}  // namespace stint::os
