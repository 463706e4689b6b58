# Installs the programs, the libraries with their headers, and a package for find_package(df11).
include(CMakePackageConfigHelpers)

# Warnings are for our own build; whoever links the installed libraries needs the language only.
get_target_property(df11_compile_options df11_flags INTERFACE_COMPILE_OPTIONS)
set_target_properties(df11_flags PROPERTIES
  EXPORT_NAME flags
  INTERFACE_COMPILE_OPTIONS "$<BUILD_INTERFACE:${df11_compile_options}>")
target_compile_features(df11_flags INTERFACE cxx_std_20)

set(df11_libraries format compressor decoder verify)
set(df11_targets ${df11_libraries})
list(TRANSFORM df11_targets PREPEND df11_)
install(TARGETS df11_flags ${df11_targets} EXPORT df11-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# df11-make-checkpoint makes inputs for trials and measurements: not installed.
install(TARGETS df11-compress df11-decompress df11-verify df11-inspect df11-bench
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The C interface stands alone: libdf11.so and df11.h.
install(TARGETS df11_capi
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# Headers keep their folders: #include "format/error.h" below include/df11.
foreach(library ${df11_libraries})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${library}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/df11
    FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/format/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/df11/format)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(df11_package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/df11)
install(EXPORT df11-targets NAMESPACE df11:: DESTINATION ${df11_package_directory})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/df11-config.cmake.in
  ${PROJECT_BINARY_DIR}/df11-config.cmake
  INSTALL_DESTINATION ${df11_package_directory}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change interfaces.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/df11-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/df11-config.cmake ${PROJECT_BINARY_DIR}/df11-config-version.cmake
  DESTINATION ${df11_package_directory})
