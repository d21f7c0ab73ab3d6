/// Compiler requirements of the library, and optional compiler features it uses. Every header includes this one.
#pragma once

#if defined(__clang__)
#if __clang_major__ < 19
#error "stint needs clang 19 or later: no earlier clang is tested, and several miscompile coroutines. g++ 14 works too."
#endif
#elif defined(__GNUC__)
#if __GNUC__ < 14
#error \
    "stint needs g++ 14 or clang 19: g++ 12 destroys temporaries twice in coroutines (an aggregate or a lambda with \
captures in an expression with co_await is a double free, silent without a sanitizer). Set CMAKE_CXX_COMPILER=clang++-19."
#endif
#else
#error "stint needs clang 19 or g++ 14"
#endif
#if __cplusplus < 202100L
#error "stint needs C++23: -std=c++23"
#endif

/// Passed in registers although the destructor is not trivial.
#if defined(__has_cpp_attribute) && __has_cpp_attribute(clang::trivial_abi)
#define STINT_TRIVIAL_ABI [[clang::trivial_abi]]
#else
#define STINT_TRIVIAL_ABI
#endif

/// The callee preserves nearly all registers, so that the caller need not save them on the path that does not call it.
#if defined(__has_cpp_attribute) && __has_cpp_attribute(clang::preserve_most)
#define STINT_PRESERVE_MOST [[clang::preserve_most]]
#else
#define STINT_PRESERVE_MOST
#endif

namespace stint::detail {

/// In a spin loop: frees the core's other hardware thread and saves power.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");  // `yield` is a no-op on most cores; `isb` takes about as long as `pause`
#endif
}

}  // namespace stint::detail
