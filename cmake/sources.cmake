# Layers in dependency order. Files are found by name: x_test.c, x_bench.c and x_fuzz.c stand beside
# x.c; *_avx2.c and *_avx512.c are compiled for their instruction set and chosen at run time.
set(TENURE_LAYERS base memory tensor model plan kernels runtime)
set(TENURE_SOURCES "")
set(TENURE_TEST_SOURCES "")
foreach(layer IN LISTS TENURE_LAYERS)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${layer}/*.c)
  list(APPEND TENURE_SOURCES ${found})
endforeach()
file(GLOB TENURE_TEST_SOURCES_OUTSIDE CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.c)
set(TENURE_TEST_SOURCES ${TENURE_SOURCES} ${TENURE_TEST_SOURCES_OUTSIDE})
list(FILTER TENURE_TEST_SOURCES INCLUDE REGEX "_test\\.c$")
set(TENURE_FUZZ_SOURCES ${TENURE_SOURCES})
list(FILTER TENURE_FUZZ_SOURCES INCLUDE REGEX "_fuzz\\.c$")
list(FILTER TENURE_SOURCES EXCLUDE REGEX "_(test|bench|fuzz)\\.c$")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # intrinsics are macros that do not pass our warnings until the compiler optimises a little
  foreach(source IN LISTS TENURE_SOURCES)
    if(source MATCHES "_avx2\\.c$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;$<$<CONFIG:Debug>:-O1>")
    elseif(source MATCHES "_avx512\\.c$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx2;-mfma;-mf16c;-mprefer-vector-width=512;$<$<CONFIG:Debug>:-O1>")
    endif()
  endforeach()
else()
  list(FILTER TENURE_SOURCES EXCLUDE REGEX "_(avx2|avx512)\\.c$")
endif()
