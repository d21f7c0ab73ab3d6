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

# stint_embed_folder(target header namespace function folder): the files that the folder's manifest.json names, compressed, as the body of
# `std::span<const Asset> function()`, which `header` declares. CMake compresses: a build needs neither Node nor gzip.
function(stint_embed_folder target header namespace function folder)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/manifest.json)
  file(READ ${folder}/manifest.json manifest)
  string(JSON count LENGTH ${manifest} files)
  math(EXPR last "${count} - 1")
  set(arrays "")
  set(entries "")
  foreach(at RANGE ${last})
    string(JSON name MEMBER ${manifest} files ${at})
    string(JSON hash GET ${manifest} files ${name})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${name})
    set(packed ${CMAKE_CURRENT_BINARY_DIR}/embed/${name}.gz)
    file(ARCHIVE_CREATE OUTPUT ${packed} PATHS ${folder}/${name} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
    file(READ ${packed} hex HEX)
    # Bytes 4 to 7 are the time of the file: without them the program is the same from build to build.
    string(SUBSTRING ${hex} 0 8 head)
    string(SUBSTRING ${hex} 16 -1 rest)
    string(REGEX REPLACE "(..)" "0x\\1," bytes ${head}00000000${rest})
    string(SUBSTRING ${hash} 0 16 tag)
    string(APPEND arrays "constexpr unsigned char kFile${at}[] = {${bytes}};\n")
    string(APPEND entries "    {\"${name}\", \"\\\"${tag}\\\"\", kFile${at}},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embed/${function}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT
    "// Generated from ${folder} by cmake/Embed.cmake.\n#include \"${header}\"\n\nnamespace ${namespace} {\nnamespace {\n\n${arrays}\nconstexpr Asset kAll[] = {\n${entries}};\n\n}  // namespace\n\nstd::span<const Asset> ${function}() noexcept { return kAll; }\n\n}  // namespace ${namespace}\n")
  target_sources(${target} PRIVATE ${source})
endfunction()
