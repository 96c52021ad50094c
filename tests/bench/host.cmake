# SPDX-License-Identifier: Apache-2.0
# The host's getrf and OpenBLAS's: `ninja host_getrf_bench`.
add_executable(host_getrf_bench dense/host_getrf_bench.cc)
target_link_libraries(host_getrf_bench
  PRIVATE crout::host crout_blas crout_version crout_flags nlohmann_json::nlohmann_json)
# Time series with each strategy: `ninja host_series_bench`.
add_executable(host_series_bench
  series/host_series_bench.cc series/series_bench.cc series/series_families.cc
  series/series_files.cc)
target_link_libraries(host_series_bench
  PRIVATE crout::host crout::io crout_version crout_flags nlohmann_json::nlohmann_json)
# Irregular batches and loops of OpenBLAS's routines: `ninja host_irr_bench`.
add_executable(host_irr_bench irregular_batches/host_irr_bench.cc)
target_link_libraries(host_irr_bench
  PRIVATE crout::host crout_blas crout_version crout_flags nlohmann_json::nlohmann_json
  OpenMP::OpenMP_CXX)
# Sequences of matrices with one pattern, and KLU: `ninja host_sparse_series_bench`.
add_executable(host_sparse_series_bench sparse/host_sparse_series_bench.cc)
target_link_libraries(host_sparse_series_bench
  PRIVATE crout::host crout::test_support crout_klu crout_version crout_flags
  nlohmann_json::nlohmann_json)
# Sparse LU, KLU, UMFPACK (GPL; only this program uses it) and SuperLU: `ninja host_sparse_bench`.
# Requires UMFPACK; SuperLU is optional.
find_library(CROUT_UMFPACK_LIBRARY umfpack)
find_path(CROUT_UMFPACK_INCLUDE umfpack.h PATH_SUFFIXES suitesparse)
find_library(CROUT_SUPERLU_LIBRARY superlu)
find_path(CROUT_SUPERLU_INCLUDE slu_ddefs.h PATH_SUFFIXES superlu)
if(CROUT_UMFPACK_LIBRARY AND CROUT_UMFPACK_INCLUDE)
  add_executable(host_sparse_bench sparse/host_sparse_bench.cc sparse/sparse_libraries.cc)
  target_include_directories(host_sparse_bench SYSTEM PRIVATE "${CROUT_UMFPACK_INCLUDE}")
  target_link_libraries(host_sparse_bench
    PRIVATE crout::host crout::test_support crout_blas crout_klu crout_version crout_flags
    nlohmann_json::nlohmann_json OpenMP::OpenMP_CXX "${CROUT_UMFPACK_LIBRARY}")
  if(CROUT_SUPERLU_LIBRARY AND CROUT_SUPERLU_INCLUDE)
    target_sources(host_sparse_bench PRIVATE sparse/superlu_library.cc)
    target_include_directories(host_sparse_bench SYSTEM PRIVATE "${CROUT_SUPERLU_INCLUDE}")
    target_compile_definitions(host_sparse_bench PRIVATE CROUT_BENCH_SUPERLU)
    target_link_libraries(host_sparse_bench PRIVATE "${CROUT_SUPERLU_LIBRARY}")
  endif()
endif()
