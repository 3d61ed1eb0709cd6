# Libraries, headers, tenure.pc, the CMake package and the man page. A wheel takes none of these.
if(SKBUILD)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS tenure_shared tenure_static EXPORT tenure
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tenure_cli)
  install(TARGETS tenure_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tenure DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

set_target_properties(tenure_shared PROPERTIES EXPORT_NAME tenure)
set_target_properties(tenure_static PROPERTIES EXPORT_NAME static)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tenure)
install(EXPORT tenure NAMESPACE tenure:: FILE tenure-targets.cmake DESTINATION ${config_dir})
file(WRITE ${CMAKE_BINARY_DIR}/tenure-config.cmake [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/tenure-targets.cmake")
]])
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tenure-config-version.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tenure-config.cmake
  ${CMAKE_BINARY_DIR}/tenure-config-version.cmake DESTINATION ${config_dir})

# The file finds the tree from where it lies, so that an installed tree may be moved.
set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH TENURE_PC_PREFIX ${pc_dir} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH TENURE_PC_INCLUDEDIR ${pc_dir} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(${CMAKE_SOURCE_DIR}/cmake/tenure.pc.in ${CMAKE_BINARY_DIR}/tenure.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tenure.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(EXISTS ${CMAKE_SOURCE_DIR}/docs/tenure.1)
  install(FILES ${CMAKE_SOURCE_DIR}/docs/tenure.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
