# The extension module, written into the package folder, so that the tree is importable in place.
file(GLOB TENURE_PYTHON_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/python/*.c)
if(TENURE_BUILD_PYTHON AND TENURE_PYTHON_SOURCES)
  find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
  add_library(tenure_python MODULE ${TENURE_PYTHON_SOURCES})
  target_include_directories(tenure_python SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
  target_include_directories(tenure_python PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(tenure_python PRIVATE Py_LIMITED_API=0x030b0000)
  target_link_libraries(tenure_python PRIVATE tenure_static tenure_flags)
  # The module carries the library but offers none of it: two modules must not share symbols.
  target_link_options(tenure_python PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(tenure_python PROPERTIES PREFIX "" OUTPUT_NAME _tenure SUFFIX .abi3.so)
  if(SKBUILD)
    install(TARGETS tenure_python LIBRARY DESTINATION tenure COMPONENT python)
  else()
    set_target_properties(tenure_python PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_SOURCE_DIR}/python/tenure)
  endif()
endif()
