# Build options. The presets set them; a project that adds Stint as a subdirectory gets only the library.

option(STINT_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(STINT_APP "Build the program `stint`" ${PROJECT_IS_TOP_LEVEL})
option(STINT_BENCHES "Build the benchmarks" OFF)
option(STINT_WERROR "Warnings are errors" ${PROJECT_IS_TOP_LEVEL})
option(STINT_COVERAGE "Instrument for llvm-cov" OFF)
set(STINT_BATCH 8 CACHE STRING "Source files that are compiled as one: cmake/Batches.cmake; 1: each alone")
set(STINT_SANITIZE "" CACHE STRING "Sanitizers: empty, `address,undefined` or `thread`")

# Time limit of a single test. Sanitizers cost 2 to 10 times.
set(STINT_TEST_SECONDS_MAX 60)
if(STINT_SANITIZE)
  set(STINT_TEST_SECONDS_MAX 180)
endif()
