# stint_layer: one folder of the tree is one call.
#
#   stint_layer(limit
#     SOURCES slots.cpp line.cpp        the library `stint_limit`, also known as `stint::limit`; none: headers only
#     ASIO_SOURCES wait.cpp             those of its sources that include Asio: all are compiled with its precompiled header
#     TESTS slots_test.cpp              linked into one program, `limit_test`; ctest knows each TEST by its name
#     BENCHES slots_bench.cpp           linked into one program, `limit_bench`
#     DEPENDS stint::domain             layers below this one (tools/tidy.py knows the order)
#     TOGETHER postgres Postgres/*      name and filter of tests that run in one process, because they share what is dear
#     LABELS tsan)                      extra ctest labels; `tsan` also runs this layer's tests under ThreadSanitizer
#
# Every test carries the layer's name as a label. One test program per layer, not per file, keeps linking short.

include(GoogleTest)

# A precompiled header, compiled once and shared: `stint_pch(target asio)` is cmake/pch_asio.hpp. It is compiled with the
# DEPENDS given by its first user; with QUICK, for targets that are compiled without optimisation.
function(stint_pch target kind)
  cmake_parse_arguments(PARSE_ARGV 2 arg "QUICK" "" "DEPENDS")
  set(owner stint_pch_${kind})
  if(arg_QUICK)
    set(owner ${owner}_quick)
  endif()
  if(NOT TARGET ${owner})
    # An empty translation unit carries the header; its flags must be those of the users, or clang refuses the file.
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

# A program of ours: flags, and the sanitizers' settings compiled in, so that it behaves alike by hand and by ctest.
function(stint_program target)
  target_link_libraries(${target} PRIVATE stint_flags)
  if(STINT_SANITIZE)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/sanitizer_options.cpp)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/cmake/sanitizer_options.cpp
      TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# How the files of tests are compiled: with a precompiled header and without optimisation, which takes half the time, with
# a sanitizer a third.
function(stint_test_flags target)
  target_compile_options(${target} PRIVATE ${STINT_QUICK_FLAGS})
  stint_pch(${target} test QUICK DEPENDS rapidcheck GTest::gtest_main)
endfunction()

# A program of GoogleTest cases: each TEST becomes a ctest `<prefix>.<Suite>.<name>`.
function(stint_gtest target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX" "SOURCES;DEPENDS;TOGETHER;LABELS")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_DEPENDS} rapidcheck GTest::gtest_main)
  stint_program(${target})
  stint_test_flags(${target})
  set(alone "")
  while(arg_TOGETHER)
    list(POP_FRONT arg_TOGETHER name filter)
    string(APPEND alone "${filter}:")
    add_test(NAME ${arg_PREFIX}.${name} COMMAND ${target} --gtest_filter=${filter})
    math(EXPR seconds "3 * ${STINT_TEST_SECONDS_MAX}")  # they are many
    set_tests_properties(${arg_PREFIX}.${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${seconds})
  endwhile()
  if(alone)
    set(alone TEST_FILTER "-${alone}")
  endif()
  gtest_discover_tests(${target}
    ${alone}
    TEST_PREFIX ${arg_PREFIX}.
    TEST_LIST tests
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${STINT_TEST_SECONDS_MAX})
  # gtest_discover_tests flattens lists, so that of two labels the second would be lost; this file runs after it.
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake)
  file(WRITE ${labels_file} "if(tests)\n  set_tests_properties(\${tests} PROPERTIES LABELS \"${arg_LABELS}\")\nendif()\nunset(tests)\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
  add_dependencies(tests ${target})
  if("tsan" IN_LIST arg_LABELS)
    add_dependencies(tsan_tests ${target})
  endif()
endfunction()

# All test programs; and what the tsan stage builds, those whose tests carry the label.
add_custom_target(tests)
add_custom_target(tsan_tests)

function(stint_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;ASIO_SOURCES;TESTS;BENCHES;DEPENDS;TOGETHER;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stint_layer(${name}): unknown ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(library stint_${name})

  if(arg_SOURCES OR arg_ASIO_SOURCES)
    add_library(${library} ${arg_SOURCES} ${arg_ASIO_SOURCES})
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
    stint_gtest(${name}_test
      PREFIX ${name} SOURCES ${arg_TESTS} DEPENDS stint::${name} TOGETHER ${arg_TOGETHER} LABELS ${name} ${arg_LABELS})
  endif()
  if(STINT_BENCHES AND arg_BENCHES)
    add_executable(${name}_bench ${arg_BENCHES})
    target_link_libraries(${name}_bench PRIVATE stint::${name} benchmark::benchmark_main)
    stint_program(${name}_bench)
  endif()
endfunction()
