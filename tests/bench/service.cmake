# SPDX-License-Identifier: Apache-2.0
# The service from outside. Build: `ninja service_bench`. Run: `service_bench [host|cuda:0]`.
foreach(name service_bench dynamic_batch_bench)
  add_executable(${name} "${PROJECT_SOURCE_DIR}/tests/bench/${name}.cc")
  target_link_libraries(${name} PRIVATE
    crout::e2e_support crout::host crout_flags crout_version nlohmann_json::nlohmann_json)
  if(CROUT_HAVE_CUDA)
    target_link_libraries(${name} PRIVATE crout::cuda)
  endif()
  set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS ${name})
endforeach()
target_sources(dynamic_batch_bench PRIVATE "${PROJECT_SOURCE_DIR}/tests/bench/call_costs.cc"
  "${PROJECT_SOURCE_DIR}/tests/bench/small_requests.cc")
# The cost of TLS: `ninja tls_bench`.
add_executable(tls_bench "${PROJECT_SOURCE_DIR}/tests/bench/tls_bench.cc"
  "${PROJECT_SOURCE_DIR}/tests/e2e/harness/certificates.cc")
target_link_libraries(tls_bench PRIVATE
  crout::e2e_support crout::host crout_flags crout_version nlohmann_json::nlohmann_json)
set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS tls_bench)
