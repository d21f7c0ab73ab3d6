/// `STINT_ASSERT`: checks for bugs, not failures. Always on, in every build; it aborts the process, which leases make
/// safe.
#pragma once

#include "stint/detail/compiler.hpp"

#include <cstdio>
#include <cstdlib>

#define STINT_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::stint::assert_failed(#condition, __FILE__, __LINE__))

namespace stint {

[[noreturn]] inline void assert_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace stint
