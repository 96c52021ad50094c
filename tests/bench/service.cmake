# SPDX-License-Identifier: Apache-2.0
# The service from outside. Build: `ninja service_bench`. Run: `service_bench [host|cuda:0]`.
foreach(name service_bench dynamic_batch_bench device_spread_bench)
  add_executable(${name} service/${name}.cc)
  target_link_libraries(${name} PRIVATE
    crout::e2e_support crout::host crout_flags crout_version nlohmann_json::nlohmann_json)
  if(CROUT_HAVE_CUDA)
    target_link_libraries(${name} PRIVATE crout::cuda)
  endif()
  set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS ${name})
endforeach()
target_sources(dynamic_batch_bench PRIVATE service/call_costs.cc service/small_requests.cc)
# The cost of TLS: `ninja tls_bench`.
add_executable(tls_bench service/tls_bench.cc ../e2e/harness/certificates.cc)
target_link_libraries(tls_bench PRIVATE
  crout::e2e_support crout::host crout_flags crout_version nlohmann_json::nlohmann_json)
set_property(GLOBAL APPEND PROPERTY CROUT_PACKAGED_TESTS tls_bench)
