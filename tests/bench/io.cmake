# SPDX-License-Identifier: Apache-2.0
# The benchmark of crout::io: `ninja matrix_market_bench`.
add_executable(matrix_market_bench io/matrix_market_bench.cc)
target_link_libraries(matrix_market_bench
  PRIVATE crout::io crout::host crout_version crout_flags benchmark::benchmark
    crout::test_gzip)
