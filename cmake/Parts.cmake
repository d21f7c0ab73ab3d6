# Third-party libraries, linked statically where Debian has static ones: `stint with` starts our program twice, and a
# program with five shared C++ libraries takes three times as long to start (1.8 ms instead of 0.7).
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
# Static: every start of `stint with` would load and bind it.
find_library(SQLite3_LIBRARY NAMES libsqlite3.a)
find_package(SQLite3 REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(CURL REQUIRED)  # its header; the library is loaded at run time, on first use
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.81 CONFIG REQUIRED COMPONENTS json)

add_library(stint_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt_library.cpp)
target_link_libraries(stint_fmt PRIVATE stint_flags)

add_library(stint_yaml INTERFACE)
find_library(STINT_YAML_ARCHIVE libyaml-cpp.a)
if(STINT_YAML_ARCHIVE)
  target_link_libraries(stint_yaml INTERFACE ${STINT_YAML_ARCHIVE})
else()
  target_link_libraries(stint_yaml INTERFACE yaml-cpp)
endif()
