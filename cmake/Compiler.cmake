# Refuses compilers that miscompile coroutines, with the reason, and finds ccache and lld.

set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
set(remedy "Use clang 19: `./dev build`, or `cmake --preset release`, or -DCMAKE_CXX_COMPILER=clang++-19 in an empty build directory.")

# The same as in core/include/stint/detail/compiler.hpp, before anything is compiled.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR
    "Stint is not built with g++ (found ${compiler}).\n"
    "g++ 12 destroys temporaries twice in coroutines: an aggregate, a lambda with captures or a class-type conditional "
    "in an expression with co_await is a double free, silent without a sanitizer; and symmetric transfer overflows the "
    "stack below -O2. g++ 14 compiles the library (tests/ports), but not this build, whose flags are clang's.\n${remedy}")
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  message(FATAL_ERROR "Stint is built and tested with clang 19 only (found ${compiler}).\n${remedy}")
endif()

find_program(STINT_CCACHE ccache)
mark_as_advanced(STINT_CCACHE)
if(STINT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # pch_defines and time_macros: ccache requires them to cache files that use a precompiled header. The rest lets all
  # trees of one machine (a clone, a worktree, CI) share compiled files: paths are relative to the root of the tree.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=true
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true ${STINT_CCACHE})
  # Without the second option that CMake adds, `-include` of the header's source: ccache would hash its absolute path.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
  set(STINT_PCH_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/compile_pch.sh)
endif()

find_program(STINT_LLD NAMES ld.lld-19 ld.lld)
mark_as_advanced(STINT_LLD)
if(STINT_LLD)
  add_link_options(--ld-path=${STINT_LLD})
endif()
