# The flags of our own code, on one target: `stint_flags`. They do not affect users of the installed library.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_COLOR_DIAGNOSTICS ON)  # ninja removes the colours without a terminal

# No NDEBUG anywhere: STINT_ASSERT and the library's own asserts stay on; leases make ending the process safe.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
if(STINT_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1 -fno-omit-frame-pointer")
endif()

# For files that need not run fast: it comes after the flags of the build type and wins.
set(STINT_QUICK_FLAGS -O0)

add_library(stint_flags INTERFACE)
target_compile_options(stint_flags INTERFACE
  -Wall -Wextra -Wpedantic
  -Wconversion -Wno-sign-conversion  # narrowing is an error; int to size_t is noise
  -Wno-string-conversion             # STINT_ASSERT(!"why this line is never reached")
  -Wshadow -Woverloaded-virtual -Wextra-semi -Wcast-qual -Wdouble-promotion
  -Wimplicit-fallthrough -Wundef -Wunused -Wmissing-noreturn -Wunreachable-code
  # Asserts name files relative to the repository's root. Debug information keeps absolute paths, which debuggers need.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  "SHELL:-iquote ${PROJECT_SOURCE_DIR}")  # cmake/Batches.cmake names files from there
if(STINT_WERROR)
  target_compile_options(stint_flags INTERFACE -Werror)
endif()

if(STINT_SANITIZE)
  target_compile_options(stint_flags INTERFACE -fsanitize=${STINT_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(stint_flags INTERFACE -fsanitize=${STINT_SANITIZE})
endif()
if(STINT_COVERAGE)
  target_compile_options(stint_flags INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(stint_flags INTERFACE -fprofile-instr-generate)
endif()

# Asio is compiled once, in core/src/asio_library.cpp. Every file that includes it, here or in a user of the installed
# library, must see the same macros, else the two disagree about the layout of its types.
set(STINT_ASIO_DEFINITIONS
  BOOST_ASIO_SEPARATE_COMPILATION
  BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=8)  # with the default of 2 blocks per thread every burst frees and refills the cache
