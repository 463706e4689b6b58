# Build options, and the flags every target of the project gets.
option(DF11_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(DF11_EXAMPLES "Build the programs in examples/" ${PROJECT_IS_TOP_LEVEL})
option(DF11_FUZZERS "Link the targets of tests/fuzz with libFuzzer (clang); otherwise they replay files" OFF)
set(DF11_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(df11_flags INTERFACE)
target_compile_options(df11_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
target_include_directories(df11_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/df11>)
if(DF11_SANITIZE)
  target_compile_options(df11_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${DF11_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(df11_flags INTERFACE -fsanitize=${DF11_SANITIZE})
endif()

if(DF11_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "DF11_FUZZERS needs clang: use the preset fuzz")
  endif()
  target_compile_options(df11_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()

include(cmake/Df11Cuda.cmake)

# df11_library(name SOURCES … LINK … [PRIVATE_LINK …]): one folder, one library, exported as df11::name.
function(df11_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(df11_${name} ${ARG_SOURCES})
  add_library(df11::${name} ALIAS df11_${name})
  set_target_properties(df11_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(df11_${name} PUBLIC df11_flags ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
endfunction()
