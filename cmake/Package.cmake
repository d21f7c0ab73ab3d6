# What `cmake --install` installs: headers, library, and the files for find_package(stint).

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stint)
install(TARGETS stint_core
  EXPORT stint
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT stint NAMESPACE stint:: FILE stint-targets.cmake DESTINATION ${package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/stint-config.cmake.in
  ${PROJECT_BINARY_DIR}/stint-config.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stint-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/stint-config.cmake
  ${PROJECT_BINARY_DIR}/stint-config-version.cmake
  DESTINATION ${package_dir})

if(TARGET stint)
  install(TARGETS stint RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
