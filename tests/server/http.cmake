crout_test(http_compression_test LABELS unit SOURCES http_compression_test.cc
  DEPS crout::http ZLIB::ZLIB)
crout_test(http_listen_address_test LABELS unit SOURCES http_listen_address_test.cc
  DEPS crout::http)
crout_test(http_server_test LABELS unit SOURCES http_server_test.cc
  DEPS crout::http crout::test_support)
crout_test(http_memory_test OWN_NEW LABELS unit SOURCES http_memory_test.cc
  DEPS crout::http crout::test_support crout::test_refused_allocations)
