# Installs into an empty prefix, then configures, builds and runs a program that knows nothing but that prefix.
#   cmake -DBUILD=… -DSOURCE=… -DWORK=… -DCOMPILER=… -P run.cmake

file(REMOVE_RECURSE ${WORK})
set(must_work COMMAND_ERROR_IS_FATAL ANY)

execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix OUTPUT_QUIET ${must_work})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix
  # The user's own choice: our flags, asserts and warnings must not be needed.
  -DCMAKE_BUILD_TYPE=MinSizeRel -DCMAKE_CXX_FLAGS=-Wall\ -Wextra\ -Werror
  OUTPUT_QUIET ${must_work})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build ${must_work})
foreach(program plain with_asio)
  execute_process(COMMAND ${WORK}/build/${program} ${must_work})
endforeach()
execute_process(COMMAND ${WORK}/prefix/bin/stint --version ${must_work})
