# SPDX-License-Identifier: Apache-2.0
# Options of the build, and the flags every target of Crout's own is compiled with.

set(CROUT_CUDA "AUTO" CACHE STRING "CUDA device support: AUTO (where a toolkit is found), ON or OFF")
set_property(CACHE CROUT_CUDA PROPERTY STRINGS AUTO ON OFF)
set(CROUT_CUDA_ARCHITECTURES "90" CACHE STRING "CUDA architectures to generate code for")
set(CROUT_PETSC "AUTO" CACHE STRING "PETSc solver type: AUTO (where pkg-config finds PETSc), ON or OFF")
set_property(CACHE CROUT_PETSC PROPERTY STRINGS AUTO ON OFF)
set(CROUT_SCALAPACK "AUTO" CACHE STRING "Groups of ranks with ScaLAPACK over Open MPI: AUTO (where found), ON or OFF")
set_property(CACHE CROUT_SCALAPACK PROPERTY STRINGS AUTO ON OFF)
set(CROUT_MUMPS "AUTO" CACHE STRING "Sparse factorizations of groups with MUMPS, which needs CROUT_SCALAPACK: AUTO (where found), ON or OFF")
set_property(CACHE CROUT_MUMPS PROPERTY STRINGS AUTO ON OFF)
set(CROUT_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=...: 'address,undefined' or 'thread'")
option(CROUT_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(CROUT_UNOPTIMISED_TESTS "Compile tests at -O0, which halves their compile time" OFF)
option(CROUT_WERROR "Treat warnings as errors" OFF)
option(CROUT_PACKAGE_TESTS "Put the tests into the install tree and the bundle" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# An interface target rather than global flags: generated protobuf code is not held to our warnings.
add_library(crout_flags INTERFACE)
target_include_directories(crout_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(crout_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety;-Wno-pass-failed>
  $<$<AND:$<BOOL:${CROUT_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  $<$<AND:$<BOOL:${CROUT_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>)

if(CROUT_SANITIZE)
  add_compile_options(
    $<$<COMPILE_LANGUAGE:CXX,C>:-fsanitize=${CROUT_SANITIZE}>
    $<$<COMPILE_LANGUAGE:CXX,C>:-fno-omit-frame-pointer>
    $<$<COMPILE_LANGUAGE:CXX,C>:-fno-sanitize-recover=all>)
  add_link_options(-fsanitize=${CROUT_SANITIZE})
endif()
if(CROUT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "CROUT_FUZZ needs clang: configure with the 'asan' preset")
  endif()
  # Coverage of libraries that parse input (crout_library). Only the fuzz targets link libFuzzer's main.
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
