# Several source files, compiled as one: docs/decisions/0033-files-compiled-together.md has the figures.
#
# stint_batches(result target FILES a.cpp … [APART prefix …]): sets `result` to what the target compiles: generated files that include up to
# STINT_BATCH of the given ones each, in the order of the list. They share one pass over the headers and one copy of each template, which is
# most of the work for a file of 150 lines. They share an anonymous namespace, too: of two helpers with one name the compiler says
# "redefinition". Two copies of one helper belong into one place; others get names that tell them apart. Files whose names begin with a
# prefix of APART are batched by themselves. With STINT_BATCH=1 each file is compiled alone: clang-tidy needs that.
function(stint_batches result target)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "FILES;APART")
  set_property(GLOBAL PROPERTY ${target}_FILES ${arg_FILES})
  if(STINT_BATCH LESS_EQUAL 1)
    set(${result} ${arg_FILES} PARENT_SCOPE)
    return()
  endif()
  set(files ${arg_FILES})
  list(FILTER files INCLUDE REGEX "\\.cpp$")
  set(batches "")
  foreach(prefix IN LISTS arg_APART ITEMS "")
    set(group ${files})
    list(FILTER group INCLUDE REGEX "(^|/)${prefix}[^/]*$")
    list(REMOVE_ITEM files ${group})
    list(LENGTH group number)
    if(number EQUAL 0)
      continue()
    endif()
    math(EXPR count "(${number} + ${STINT_BATCH} - 1) / ${STINT_BATCH}")
    foreach(batch RANGE 1 ${count})
      math(EXPR begin "(${batch} - 1) * ${number} / ${count}")
      math(EXPR length "${batch} * ${number} / ${count} - ${begin}")
      list(SUBLIST group ${begin} ${length} members)
      stint_batch(${CMAKE_CURRENT_BINARY_DIR}/${target}.batches/${prefix}${batch}.cpp ${members})
      list(APPEND batches ${CMAKE_CURRENT_BINARY_DIR}/${target}.batches/${prefix}${batch}.cpp)
    endforeach()
  endforeach()
  set(${result} ${batches} PARENT_SCOPE)
endfunction()

# Generates one. It names files by their path from the root of the tree: ccache finds it again in another tree of this machine.
function(stint_batch output)
  set(text "")
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(APPEND text "#include \"${file}\"\n")
  endforeach()
  file(GENERATE OUTPUT ${output} CONTENT "${text}")
endfunction()
