# Installs into an empty prefix, then configures, builds and runs a program that uses only that prefix.
#   cmake -DBUILD=… -DSOURCE=… -DWORK=… -DCOMPILER=… -P run.cmake

file(REMOVE_RECURSE ${WORK})
set(must_work COMMAND_ERROR_IS_FATAL ANY)

execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix OUTPUT_QUIET ${must_work})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix
  # The user's own build type: our flags, asserts and warnings must not be needed.
  -DCMAKE_BUILD_TYPE=MinSizeRel -DCMAKE_CXX_FLAGS=-Wall\ -Wextra\ -Werror
  OUTPUT_QUIET ${must_work})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build ${must_work})
foreach(program plain with_asio)
  execute_process(COMMAND ${WORK}/build/${program} ${must_work})
endforeach()
execute_process(COMMAND ${WORK}/prefix/bin/stint --version ${must_work})

# Another Boost than the one compiled into the library is refused, and the error names both.
file(WRITE ${WORK}/other/lib/cmake/Boost-1.99.0/BoostConfig.cmake "")
file(WRITE ${WORK}/other/lib/cmake/Boost-1.99.0/BoostConfigVersion.cmake "set(PACKAGE_VERSION 1.99.0)\n")
find_program(ninja ninja REQUIRED)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/refused -G Ninja -DCMAKE_MAKE_PROGRAM=${ninja}
  -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_PREFIX_PATH=${WORK}/prefix;${WORK}/other"
  -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF
  OUTPUT_QUIET ERROR_VARIABLE refusal RESULT_VARIABLE status)
string(REGEX REPLACE "[ \n]+" " " refusal "${refusal}")  # CMake breaks the lines
if(status EQUAL 0 OR NOT refusal MATCHES "stint was built with Boost [0-9.]+ and needs exactly that .found: 1.99.0.")
  message(FATAL_ERROR "with another Boost, find_package(stint) must fail with that reason; its output:\n${refusal}")
endif()
