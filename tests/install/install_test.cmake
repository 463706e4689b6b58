# See CMakeLists.txt. Variables: BUILD SOURCE CONFIG WORK GENERATOR CXX VERSION.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --config "${CONFIG}" --prefix ${WORK}/first)
# A package is built in one place and used in another.
file(RENAME ${WORK}/first ${WORK}/prefix)

file(GLOB_RECURSE package_files ${WORK}/prefix/*.cmake)
if(NOT package_files)
  message(FATAL_ERROR "no package files were installed")
endif()
foreach(file ${package_files})
  file(READ ${file} text)
  foreach(path ${SOURCE} ${BUILD} ${WORK}/first)
    string(FIND "${text}" "${path}/" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} names ${path}")
    endif()
  endforeach()
endforeach()

foreach(program df11-compress df11-decompress df11-verify df11-inspect df11-bench)
  run(${WORK}/prefix/bin/${program} --version)
  string(STRIP "${output}" output)
  if(NOT output STREQUAL VERSION)
    message(FATAL_ERROR "${program} --version says ${output}, not ${VERSION}")
  endif()
endforeach()
if(EXISTS ${WORK}/prefix/bin/df11-make-checkpoint)
  message(FATAL_ERROR "df11-make-checkpoint is no part of an installation")
endif()

# -Wall in the consumer's flags would be a usage requirement that leaked: it builds with -Werror and a
# line that warns under -Wconversion.
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/consumer -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_PREFIX_PATH=${WORK}/prefix
  -DCMAKE_CXX_FLAGS=-Werror)
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/consumer ${WORK}/checkpoint)
file(REMOVE_RECURSE ${WORK})
