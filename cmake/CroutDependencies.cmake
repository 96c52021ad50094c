# SPDX-License-Identifier: Apache-2.0
# Every outside dependency, found once. Debian package names are in deploy/packages.txt.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(CURL 7.88 REQUIRED)  # signs requests (CURLOPT_AWS_SIGV4) with the SHA-256 of their bodies
find_package(Boost REQUIRED)  # headers alone: Asio and Beast
find_package(absl REQUIRED)
# Newer protobuf ships its own CMake package; Debian 12's is found by CMake's module.
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(FastFloat CONFIG REQUIRED)
find_path(CROUT_MINIZIP_INCLUDE minizip/unzip.h REQUIRED)
find_library(CROUT_MINIZIP_LIBRARY minizip REQUIRED)
add_library(crout_minizip INTERFACE)
target_include_directories(crout_minizip SYSTEM INTERFACE "${CROUT_MINIZIP_INCLUDE}")
target_link_libraries(crout_minizip INTERFACE "${CROUT_MINIZIP_LIBRARY}")

# The allocator of the daemon (decision 0080). Sanitizers have their own.
add_library(crout_malloc INTERFACE)
if(NOT CROUT_SANITIZE)
  find_path(CROUT_TCMALLOC_INCLUDE gperftools/malloc_extension_c.h REQUIRED)
  find_library(CROUT_TCMALLOC_LIBRARY tcmalloc_minimal REQUIRED)
  target_include_directories(crout_malloc SYSTEM INTERFACE "${CROUT_TCMALLOC_INCLUDE}")
  target_compile_definitions(crout_malloc INTERFACE CROUT_HAVE_TCMALLOC)
  target_link_libraries(crout_malloc INTERFACE "${CROUT_TCMALLOC_LIBRARY}")
endif()

find_program(CROUT_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# OpenBLAS with LAPACK inside. The OpenMP flavour, because its thread count can be set for each
# calling thread (see docs/decisions): prefer it where several flavours are installed.
find_library(CROUT_OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-openmp REQUIRED)
find_library(CROUT_LAPACKE_LIBRARY lapacke REQUIRED)
find_path(CROUT_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-openmp openblas REQUIRED)
find_path(CROUT_LAPACKE_INCLUDE lapacke.h REQUIRED)
find_path(CROUT_XXHASH_INCLUDE xxhash.h REQUIRED)
add_library(crout_blas INTERFACE)
target_include_directories(crout_blas SYSTEM INTERFACE
  "${CROUT_CBLAS_INCLUDE}" "${CROUT_LAPACKE_INCLUDE}")
target_link_libraries(crout_blas INTERFACE "${CROUT_LAPACKE_LIBRARY}" "${CROUT_OPENBLAS_LIBRARY}")

# Orderings and sparse LU: AMD (BSD) and KLU (LGPL 2.1 or later) of SuiteSparse, and METIS (Apache 2.0).
# KLU calls COLAMD and BTF. SuiteSparse's libraries are linked as shared libraries. Its parts under the GPL
# (CHOLMOD, UMFPACK) are not linked.
find_path(CROUT_AMD_INCLUDE amd.h PATH_SUFFIXES suitesparse REQUIRED)
find_library(CROUT_AMD_LIBRARY amd REQUIRED)
find_library(CROUT_SUITESPARSECONFIG_LIBRARY suitesparseconfig REQUIRED)
add_library(crout_amd INTERFACE)
target_include_directories(crout_amd SYSTEM INTERFACE "${CROUT_AMD_INCLUDE}")
target_link_libraries(crout_amd INTERFACE
  "${CROUT_AMD_LIBRARY}" "${CROUT_SUITESPARSECONFIG_LIBRARY}")
find_path(CROUT_KLU_INCLUDE klu.h PATH_SUFFIXES suitesparse REQUIRED)
find_library(CROUT_KLU_LIBRARY NAMES libklu.so klu REQUIRED)
add_library(crout_klu INTERFACE)
target_include_directories(crout_klu SYSTEM INTERFACE "${CROUT_KLU_INCLUDE}")
target_link_libraries(crout_klu INTERFACE
  "${CROUT_KLU_LIBRARY}" "${CROUT_SUITESPARSECONFIG_LIBRARY}")
find_path(CROUT_METIS_INCLUDE metis.h REQUIRED)
find_library(CROUT_METIS_LIBRARY metis REQUIRED)
add_library(crout_metis INTERFACE)
target_include_directories(crout_metis SYSTEM INTERFACE "${CROUT_METIS_INCLUDE}")
target_link_libraries(crout_metis INTERFACE "${CROUT_METIS_LIBRARY}")

# CUDA. AUTO enables it if a compiler is found; the configuration prints the result.
set(CROUT_HAVE_CUDA OFF)
if(NOT CROUT_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES "${CROUT_CUDA_ARCHITECTURES}")
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    find_package(CUDAToolkit REQUIRED)
    set(CROUT_HAVE_CUDA ON)
    # Programs in the build tree find libcrout_cuda.so in this folder.
    set(CMAKE_BUILD_RPATH "${PROJECT_BINARY_DIR}/kernels/cuda")
  elseif(CROUT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CROUT_CUDA=ON, but no CUDA compiler was found: put nvcc on PATH")
  endif()
endif()
message(STATUS "Crout: CUDA device support ${CROUT_HAVE_CUDA}")

# PETSc and its MPI, for libcroutpetsc. Programs with PETSc are not built with sanitizers.
set(CROUT_HAVE_PETSC OFF)
if(NOT CROUT_PETSC STREQUAL "OFF" AND NOT CROUT_SANITIZE)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(CROUT_PETSC_PACKAGE QUIET IMPORTED_TARGET "PETSc>=3.18")
  endif()
  if(CROUT_PETSC_PACKAGE_FOUND)
    find_package(MPI QUIET COMPONENTS C)
    set(CROUT_HAVE_PETSC "${MPI_C_FOUND}")
  endif()
  if(CROUT_PETSC STREQUAL "ON" AND NOT CROUT_HAVE_PETSC)
    message(FATAL_ERROR "CROUT_PETSC=ON, but pkg-config found no PETSc 3.18 or newer, or CMake no MPI: set PKG_CONFIG_PATH")
  endif()
endif()
message(STATUS "Crout: PETSc solver type ${CROUT_HAVE_PETSC}")

# ScaLAPACK over Open MPI, for crout-rank. The ranks of a group are not built with sanitizers.
set(CROUT_HAVE_SCALAPACK OFF)
if(NOT CROUT_SCALAPACK STREQUAL "OFF" AND NOT CROUT_SANITIZE)
  find_library(CROUT_SCALAPACK_LIBRARY scalapack-openmpi)
  find_program(CROUT_MPIRUN NAMES mpirun.openmpi mpirun)
  if(CROUT_SCALAPACK_LIBRARY AND CROUT_MPIRUN)
    set(CROUT_HAVE_SCALAPACK ON)
  elseif(CROUT_SCALAPACK STREQUAL "ON")
    message(FATAL_ERROR "CROUT_SCALAPACK=ON, but libscalapack-openmpi or mpirun was not found: install libscalapack-openmpi-dev and openmpi-bin")
  endif()
endif()
message(STATUS "Crout: groups of ranks with ScaLAPACK ${CROUT_HAVE_SCALAPACK}")

# MUMPS over the same MPI, for the same program. Debian's variants for one process have other names.
set(CROUT_HAVE_MUMPS OFF)
if(NOT CROUT_MUMPS STREQUAL "OFF" AND CROUT_HAVE_SCALAPACK)
  find_path(CROUT_MUMPS_INCLUDE dmumps_c.h)
  set(CROUT_MUMPS_LIBRARIES)
  set(CROUT_HAVE_MUMPS "${CROUT_MUMPS_INCLUDE}")
  foreach(name smumps dmumps cmumps zmumps mumps_common)
    find_library(CROUT_${name}_LIBRARY ${name})
    list(APPEND CROUT_MUMPS_LIBRARIES "${CROUT_${name}_LIBRARY}")
    if(NOT CROUT_${name}_LIBRARY)
      set(CROUT_HAVE_MUMPS OFF)
    endif()
  endforeach()
endif()
if(CROUT_HAVE_MUMPS)
  set(CROUT_HAVE_MUMPS ON)
elseif(CROUT_MUMPS STREQUAL "ON" AND NOT CROUT_SANITIZE)
  message(FATAL_ERROR "CROUT_MUMPS=ON, but ScaLAPACK or MUMPS was not found: install libmumps-dev")
else()
  set(CROUT_HAVE_MUMPS OFF)
endif()
message(STATUS "Crout: groups of ranks with MUMPS ${CROUT_HAVE_MUMPS}")

if(BUILD_TESTING)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()
