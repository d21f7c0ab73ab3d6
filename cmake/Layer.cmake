# stint_layer: one call per folder of the tree.
#
#   stint_layer(limit
#     SOURCES slots.cpp line.cpp        the library `stint_limit`, also known as `stint::limit`; none: headers only
#     ASIO_SOURCES wait.cpp             those of its sources that include Asio: all are compiled with its precompiled header
#     TESTS slots_test.cpp              linked into one program, `limit_test`, which is one entry of ctest: cmake/Tests.cmake
#     BENCHES slots_bench.cpp           linked into one program, `limit_bench`
#     DEPENDS stint::domain             layers below this one (tools/tidy.py has the order)
#     APART postgres_                   files whose names begin so are compiled in batches of their own: cmake/Batches.cmake
#     TOGETHER postgres Postgres/*      name and filter of tests that get their own entry: `limit.postgres`
#     PARTS 2                           that many entries, `limit.part1` and `limit.part2`, for a program that takes long
#     LABELS tsan)                      extra ctest labels; `tsan` also runs this layer's tests under ThreadSanitizer
#
# Every test carries the layer's name as a label. One test program per layer, not per file, keeps linking short.

include(Batches)
include(Tests)

# A precompiled header, compiled once and shared: `stint_pch(target asio)` is cmake/pch_asio.hpp. It is compiled with the
# DEPENDS given by its first user; with QUICK, for targets that are compiled without optimisation.
function(stint_pch target kind)
  cmake_parse_arguments(PARSE_ARGV 2 arg "QUICK" "" "DEPENDS")
  set(owner stint_pch_${kind})
  if(arg_QUICK)
    set(owner ${owner}_quick)
  endif()
  if(NOT TARGET ${owner})
    # An empty translation unit carries the header; its flags must equal those of the users, else clang refuses the file.
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/pch/${owner}.cpp CONTENT "")
    add_library(${owner} OBJECT ${PROJECT_BINARY_DIR}/pch/${owner}.cpp)
    if(arg_QUICK)
      target_compile_options(${owner} PRIVATE ${STINT_QUICK_FLAGS})
    endif()
    target_link_libraries(${owner} PRIVATE stint_flags Boost::headers Threads::Threads ${arg_DEPENDS})
    target_compile_definitions(${owner} PRIVATE ${STINT_ASIO_DEFINITIONS})
    target_precompile_headers(${owner} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch_${kind}.hpp)
    # ccache must see the same bytes from one build to the next.
    target_compile_options(${owner} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    if(STINT_PCH_LAUNCHER)
      set_target_properties(${owner} PROPERTIES CXX_COMPILER_LAUNCHER ${STINT_PCH_LAUNCHER})
    endif()
  endif()
  target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# A program of ours: our flags, and the sanitizers' settings compiled in, so that it behaves the same by hand and by ctest.
function(stint_program target)
  target_link_libraries(${target} PRIVATE stint_flags)
  if(STINT_SANITIZE)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/sanitizer_options.cpp)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/cmake/sanitizer_options.cpp
      TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# stint_executable(name a.cpp …): a program whose files are compiled in batches.
function(stint_executable target)
  stint_batches(batches ${target} FILES ${ARGN})
  add_executable(${target} ${batches})
  stint_program(${target})
endfunction()

# Compiles test files with a precompiled header and without optimisation, which takes half the time, with
# a sanitizer a third.
function(stint_test_flags target)
  target_compile_options(${target} PRIVATE ${STINT_QUICK_FLAGS})
  stint_pch(${target} test QUICK DEPENDS rapidcheck GTest::gtest_main)
endfunction()

function(stint_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PARTS" "SOURCES;ASIO_SOURCES;TESTS;BENCHES;DEPENDS;APART;TOGETHER;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stint_layer(${name}): unknown ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(library stint_${name})

  if(arg_SOURCES OR arg_ASIO_SOURCES)
    stint_batches(batches ${library} FILES ${arg_SOURCES} ${arg_ASIO_SOURCES} APART ${arg_APART})
    add_library(${library} ${batches})
    set(reach PUBLIC)
    # BUILD_INTERFACE keeps our flags out of the installed package.
    target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:stint_flags>)
    if(arg_ASIO_SOURCES)
      stint_pch(${library} asio)
    else()
      stint_pch(${library} std)
    endif()
  else()
    add_library(${library} INTERFACE)
    set(reach INTERFACE)
  endif()
  add_library(stint::${name} ALIAS ${library})
  target_link_libraries(${library} ${reach} ${arg_DEPENDS})
  if(NOT name STREQUAL "core")
    target_include_directories(${library} ${reach} ${PROJECT_SOURCE_DIR}/src)
  endif()

  if(STINT_TESTS AND arg_TESTS)
    set(parts "")
    if(arg_PARTS)
      set(parts PARTS ${arg_PARTS})
    endif()
    stint_gtest(${name}_test ${parts}
      PREFIX ${name} SOURCES ${arg_TESTS} DEPENDS stint::${name} APART ${arg_APART} TOGETHER ${arg_TOGETHER} LABELS ${name} ${arg_LABELS})
  endif()
  if(STINT_BENCHES AND arg_BENCHES)
    add_executable(${name}_bench ${arg_BENCHES})
    target_link_libraries(${name}_bench PRIVATE stint::${name} benchmark::benchmark_main)
    stint_program(${name}_bench)
  endif()
endfunction()
