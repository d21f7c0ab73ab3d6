# Programs for people to read, run and solve, under examples/.

# stint_example(name [SOURCES a.cpp …] [DEPENDS …]): the program `example_name` from name.cpp. Running it is a test: it
# must end soon, with status 0.
function(stint_example name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  if(NOT arg_SOURCES)
    set(arg_SOURCES ${name}.cpp)
  endif()
  add_executable(example_${name} ${arg_SOURCES})
  target_link_libraries(example_${name} PRIVATE stint::core ${arg_DEPENDS})
  stint_program(example_${name})
  stint_pch(example_${name} asio)
  stint_entry(examples.${name} COMMAND example_${name} LABELS examples)
  add_dependencies(tests example_${name})
endfunction()

# stint_exercise(01_basic TEST test.cpp EXERCISE exercise/x.hpp SOLUTION solution/x.hpp): one set of tests, two programs.
# `exercise_01_basic` fails until it is solved, so it is built with everything else but is not a test of ours;
# `solution_01_basic` is. The test includes "x.hpp", and gets the one of the program it is compiled into.
# `./dev exercises [--solutions]` runs them.
function(stint_exercise name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TEST;EXERCISE;SOLUTION;DEPENDS")
  stint_gtest(solution_${name}
    PREFIX exercises.${name} SOURCES ${arg_TEST} ${arg_SOLUTION} DEPENDS stint::core ${arg_DEPENDS} LABELS examples)
  add_executable(exercise_${name} ${arg_TEST} ${arg_EXERCISE})
  target_link_libraries(exercise_${name} PRIVATE stint::core ${arg_DEPENDS} rapidcheck GTest::gtest_main)
  stint_program(exercise_${name})
  stint_test_flags(exercise_${name})
  foreach(kind exercise solution)
    string(TOUPPER ${kind} files)
    list(GET arg_${files} 0 first)
    cmake_path(GET first PARENT_PATH folder)
    target_include_directories(${kind}_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
    add_dependencies(${kind}s ${kind}_${name})
    set_target_properties(${kind}_${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples/exercises)
  endforeach()
endfunction()

if(STINT_TESTS)
  add_custom_target(exercises)
  add_custom_target(solutions)
endif()
