# Entries of ctest, and how many of them run at once.
#
# A machine of N cores has 4 N slots (`ctest -j`, set by ./dev). An entry that computes takes 3 of them, so that each core runs one; an
# entry that mostly waits for processes and clocks takes 1 (WAITS): one waits beside each that computes, and four a core when those are
# done. One whose timing measurements other tests would disturb runs ALONE. Labels: `tsan` also runs under ThreadSanitizer; `long` and
# `ports` run in the long form only (`./dev test --full`).

if(STINT_TESTS)
  find_program(STINT_PYTHON python3 REQUIRED)
  mark_as_advanced(STINT_PYTHON)
  # All test programs; and those that the tsan stage builds, whose tests carry the label.
  add_custom_target(tests)
  add_custom_target(tsan_tests)
endif()

# stint_entry(name COMMAND … [LABELS …] [SECONDS_MAX n] [SECONDS n] [WAITS | ALONE] [PROPERTIES …])
# SECONDS: about how long it takes, for entries of more than half a minute: ctest starts the longest first.
function(stint_entry name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WAITS;ALONE" "SECONDS;SECONDS_MAX" "COMMAND;LABELS;PROPERTIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stint_entry(${name}): unknown ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SECONDS_MAX)
    set(arg_SECONDS_MAX ${STINT_TEST_SECONDS_MAX})
  endif()
  set(places 3)
  if(arg_WAITS)
    set(places 1)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_SECONDS_MAX} PROCESSORS ${places} ${arg_PROPERTIES})
  if(arg_ALONE)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  if(arg_SECONDS)
    set_tests_properties(${name} PROPERTIES COST ${arg_SECONDS})
  endif()
endfunction()

# stint_script(integration.serve serve_test.py [ARGUMENTS …] [CLASSES Api Cost …] …): a Python test in the folder of the caller. Each
# class gets its own entry, `integration.serve.Api`, with its name as the script's last argument. The rest as for stint_entry.
function(stint_script name script)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ARGUMENTS;CLASSES;LABELS;PROPERTIES")
  set(command ${STINT_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${arg_ARGUMENTS})
  if(NOT arg_CLASSES)
    stint_entry(${name} COMMAND ${command} LABELS ${arg_LABELS} PROPERTIES ${arg_PROPERTIES} ${arg_UNPARSED_ARGUMENTS})
  endif()
  foreach(class IN LISTS arg_CLASSES)
    stint_entry(${name}.${class} COMMAND ${command} ${class} LABELS ${arg_LABELS} PROPERTIES ${arg_PROPERTIES} ${arg_UNPARSED_ARGUMENTS})
  endforeach()
endfunction()

# A program of GoogleTest cases: one entry of ctest. tools/gtest_run.py runs its tests in one process and counts each one, as
# `<prefix>.<Suite>.<name>`. TOGETHER (name, filter, …) gives some tests their own entry, PARTS splits the rest.
function(stint_gtest target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX;PARTS" "SOURCES;DEPENDS;APART;TOGETHER;LABELS")
  stint_batches(batches ${target} FILES ${arg_SOURCES} APART ${arg_APART})
  add_executable(${target} ${batches})
  target_link_libraries(${target} PRIVATE ${arg_DEPENDS} rapidcheck GTest::gtest_main)
  stint_program(${target})
  stint_test_flags(${target})
  add_dependencies(tests ${target})
  if("tsan" IN_LIST arg_LABELS)
    add_dependencies(tsan_tests ${target})
  endif()

  set(run ${STINT_PYTHON} -B ${PROJECT_SOURCE_DIR}/tools/gtest_run.py $<TARGET_FILE:${target}>
    --name ${arg_PREFIX} --seconds-max ${STINT_TEST_SECONDS_MAX} --results ${PROJECT_BINARY_DIR}/test-results)
  math(EXPR seconds_max "15 * ${STINT_TEST_SECONDS_MAX}")  # of all of them
  set(others "")
  while(arg_TOGETHER)
    list(POP_FRONT arg_TOGETHER name filter)
    string(APPEND others "${filter}:")
    stint_entry(${arg_PREFIX}.${name} COMMAND ${run} --entry ${arg_PREFIX}.${name} --filter=${filter}
      LABELS ${arg_LABELS} SECONDS_MAX ${seconds_max} SECONDS 60)
  endwhile()
  if(others)
    list(APPEND run "--filter=-${others}")
  endif()
  if(NOT arg_PARTS)
    stint_entry(${arg_PREFIX} COMMAND ${run} LABELS ${arg_LABELS} SECONDS_MAX ${seconds_max} SECONDS 5)
    return()
  endif()
  foreach(part RANGE 1 ${arg_PARTS})
    set(entry ${arg_PREFIX}.part${part})
    stint_entry(${entry} COMMAND ${run} --entry ${entry} --part ${part}/${arg_PARTS} LABELS ${arg_LABELS} SECONDS_MAX ${seconds_max} SECONDS 30)
  endforeach()
endfunction()
