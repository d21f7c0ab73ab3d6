# stint_embed(target header namespace name file): the bytes of a text file as a constant `name` in a header.
function(stint_embed target header namespace name file)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  # CMake limits the length of one argument, so the text is split into pieces, which the compiler joins. The joined literal
  # may exceed the 65,536 bytes that every compiler must accept; ours accept more.
  string(LENGTH "${text}" length)
  set(pieces "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 16000 piece)
    string(APPEND pieces "\n    R\"embed(${piece})embed\"")
    math(EXPR at "${at} + 16000")
  endwhile()
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/embed/${header} CONTENT
    "// Generated from ${file} by cmake/Embed.cmake.\n#pragma once\n\n#include <string_view>\n\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\nnamespace ${namespace} {\n\ninline constexpr std::string_view ${name} =${pieces};\n\n}  // namespace ${namespace}\n\n#pragma GCC diagnostic pop\n")
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embed)
endfunction()
