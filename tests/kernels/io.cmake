# Tests of crout::io and of the thread pool.
add_library(crout_matrix_market_testing STATIC
  "${PROJECT_SOURCE_DIR}/tests/kernels/matrix_market_testing.cc")
target_link_libraries(crout_matrix_market_testing
  PUBLIC crout::io crout::test_gzip PRIVATE crout_flags absl::str_format)

foreach(name entry_reader matrix_market_reader matrix_market_errors matrix_market_files line_map sparse_block thread_pool)
  crout_test(${name}_test LABELS unit
    SOURCES "${PROJECT_SOURCE_DIR}/tests/kernels/${name}_test.cc"
    DEPS crout_matrix_market_testing)
endforeach()
crout_test(matrix_market_memory_test OWN_NEW LABELS unit
  SOURCES "${PROJECT_SOURCE_DIR}/tests/kernels/matrix_market_memory_test.cc"
  DEPS crout_matrix_market_testing crout::test_counted_heap)
crout_test(matrix_market_refusal_test OWN_NEW LABELS unit
  SOURCES "${PROJECT_SOURCE_DIR}/tests/kernels/matrix_market_refusal_test.cc"
  DEPS crout_matrix_market_testing crout::test_refused_allocations)
target_link_libraries(matrix_market_files_test PRIVATE ZLIB::ZLIB)
target_compile_definitions(matrix_market_files_test
  PRIVATE "CROUT_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
