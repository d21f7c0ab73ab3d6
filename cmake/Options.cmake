# What can be chosen. The presets choose it; a program that adds Stint as a subdirectory gets the library alone.

option(STINT_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(STINT_APP "Build the program `stint`" ${PROJECT_IS_TOP_LEVEL})
option(STINT_BENCHES "Build the benchmarks" OFF)
option(STINT_WERROR "Warnings are errors" ${PROJECT_IS_TOP_LEVEL})
option(STINT_COVERAGE "Instrument for llvm-cov" OFF)
set(STINT_SANITIZE "" CACHE STRING "Sanitizers: empty, `address,undefined` or `thread`")

# No single test may take longer. Sanitizers cost 2 to 10 times.
set(STINT_TEST_SECONDS_MAX 60)
if(STINT_SANITIZE)
  set(STINT_TEST_SECONDS_MAX 180)
endif()
