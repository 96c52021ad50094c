# SPDX-License-Identifier: Apache-2.0
# Benchmarks of the CUDA device. They run on a machine with a GPU.
if(CROUT_HAVE_CUDA)
  set(bench "${PROJECT_SOURCE_DIR}/tests/bench")
  add_executable(gpu_service_bench
    "${bench}/gpu_bench.cc" "${bench}/gpu_concurrency_bench.cc" "${bench}/gpu_latency_bench.cc"
    "${bench}/gpu_service_bench.cc" "${bench}/gpu_solver_bench.cc" "${bench}/gpu_upload_bench.cc")
  target_link_libraries(gpu_service_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_methods_bench "${bench}/gpu_methods_bench.cc" "${bench}/gpu_schur_bench.cc")
  target_link_libraries(gpu_methods_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_stripes_bench "${bench}/gpu_stripes_bench.cc" "${bench}/gpu_stripes.cu")
  target_link_libraries(gpu_stripes_bench PRIVATE crout::cuda_device crout::host crout_flags
    crout_version nlohmann_json::nlohmann_json)
  add_executable(gpu_solve_bench "${bench}/gpu_bench.cc" "${bench}/gpu_solve_bench.cc")
  target_link_libraries(gpu_solve_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_mixed_bench "${bench}/gpu_mixed_bench.cc")
  target_link_libraries(gpu_mixed_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_probe_bench "${bench}/gpu_probe_bench.cc")
  target_link_libraries(gpu_probe_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_series_bench
    "${bench}/gpu_series_bench.cc" "${bench}/series_bench.cc" "${bench}/series_families.cc"
    "${bench}/series_files.cc")
  target_link_libraries(gpu_series_bench PRIVATE crout::cuda_device crout::io crout_flags crout_version
    nlohmann_json::nlohmann_json)
  add_executable(gpu_irr_bench
    "${bench}/gpu_irr_bench.cc" "${bench}/gpu_irr_blocks.cc" "${bench}/gpu_irr_panels.cu")
  target_link_libraries(gpu_irr_bench PRIVATE crout::cuda_device crout_flags crout_version
    nlohmann_json::nlohmann_json)
  target_compile_options(gpu_irr_bench PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  add_executable(gpu_sparse_bench
    "${bench}/cudss.cc" "${bench}/gpu_fronts.cc" "${bench}/gpu_sparse_bench.cc")
  target_link_libraries(gpu_sparse_bench PRIVATE crout::cuda_device crout::test_support crout_flags
    crout_version nlohmann_json::nlohmann_json)
  set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS gpu_sparse_bench gpu_irr_bench gpu_series_bench gpu_service_bench gpu_methods_bench
    gpu_mixed_bench gpu_probe_bench gpu_solve_bench gpu_stripes_bench)

  set(lu_benches gpu_iterative_bench gpu_lu_bench)
  if(TARGET CUDA::cupti)
    list(APPEND lu_benches gpu_lu_profile)
  endif()
  foreach(name ${lu_benches})
    add_executable(${name}
      "${bench}/${name}.cc" "${bench}/factor_residual.cc" "${bench}/factor_residual.cu")
    target_link_libraries(${name} PRIVATE crout::cuda_device crout_flags crout_version
      nlohmann_json::nlohmann_json)
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
    set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS ${name})
  endforeach()
  target_sources(gpu_lu_bench PRIVATE "${bench}/gpu_lu_gallery.cc")
  target_link_libraries(gpu_lu_bench PRIVATE crout::test_support)
  if(TARGET gpu_lu_profile)
    target_link_libraries(gpu_lu_profile PRIVATE CUDA::cupti)
  endif()
endif()
