# SPDX-License-Identifier: Apache-2.0
# Benchmarks of the CUDA device. They run on a machine with a GPU.
if(CROUT_HAVE_CUDA)
  add_executable(gpu_service_bench
    harness/gpu_bench.cc service/gpu_concurrency_bench.cc service/gpu_latency_bench.cc
    service/gpu_service_bench.cc service/gpu_solver_bench.cc service/gpu_upload_bench.cc)
  target_link_libraries(gpu_service_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_methods_bench dense/gpu_methods_bench.cc dense/gpu_schur_bench.cc)
  target_link_libraries(gpu_methods_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_stripes_bench dense/gpu_stripes_bench.cc dense/gpu_stripes.cu)
  target_link_libraries(gpu_stripes_bench PRIVATE crout::cuda_device crout::host crout_flags
    crout_version nlohmann_json::nlohmann_json)
  add_executable(gpu_solve_bench harness/gpu_bench.cc dense/gpu_solve_bench.cc)
  target_link_libraries(gpu_solve_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_mixed_bench dense/gpu_mixed_bench.cc)
  target_link_libraries(gpu_mixed_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_probe_bench dense/gpu_probe_bench.cc)
  target_link_libraries(gpu_probe_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_series_bench
    series/gpu_series_bench.cc series/series_bench.cc series/series_families.cc
    series/series_files.cc)
  target_link_libraries(gpu_series_bench PRIVATE crout::cuda_device crout::io crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_irr_bench
    irregular_batches/gpu_irr_bench.cc irregular_batches/gpu_irr_blocks.cc
    irregular_batches/gpu_irr_panels.cu)
  target_link_libraries(gpu_irr_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  target_compile_options(gpu_irr_bench PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  add_executable(gpu_sparse_bench sparse/cudss.cc sparse/gpu_fronts.cc sparse/gpu_sparse_bench.cc)
  target_link_libraries(gpu_sparse_bench PRIVATE crout::cuda_device crout::test_support crout_flags
    crout_version nlohmann_json::nlohmann_json)
  # Instructions of wgmma exist for 90a alone.
  add_executable(gpu_int8_bench int8_product/gpu_int8_bench.cu int8_product/int8_product.cu
    int8_product/modular_product.cu int8_product/residue_system.cc)
  set_target_properties(gpu_int8_bench PROPERTIES CUDA_ARCHITECTURES 90a)
  target_link_libraries(gpu_int8_bench PRIVATE CUDA::cublas crout_flags)
  target_compile_options(gpu_int8_bench PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS gpu_int8_bench gpu_sparse_bench gpu_irr_bench gpu_series_bench gpu_service_bench gpu_methods_bench
    gpu_mixed_bench gpu_probe_bench gpu_solve_bench gpu_stripes_bench)

  set(lu_benches gpu_iterative_bench gpu_lu_bench)
  if(TARGET CUDA::cupti)
    list(APPEND lu_benches gpu_lu_profile)
  endif()
  foreach(name ${lu_benches})
    add_executable(${name} dense/${name}.cc dense/factor_residual.cc dense/factor_residual.cu)
    target_link_libraries(${name} PRIVATE crout::cuda_device crout_flags crout_version
      nlohmann_json::nlohmann_json)
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
    set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS ${name})
  endforeach()
  target_sources(gpu_lu_bench PRIVATE dense/gpu_lu_gallery.cc)
  target_link_libraries(gpu_lu_bench PRIVATE crout::test_support)
  if(TARGET gpu_lu_profile)
    target_link_libraries(gpu_lu_profile PRIVATE CUDA::cupti)
  endif()
endif()
