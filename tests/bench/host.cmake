# The host's getrf beside OpenBLAS's: `ninja host_getrf_bench`, then run it.
add_executable(host_getrf_bench "${PROJECT_SOURCE_DIR}/tests/bench/host_getrf_bench.cc")
target_link_libraries(host_getrf_bench
  PRIVATE crout::host crout_blas crout_version crout_flags nlohmann_json::nlohmann_json)
