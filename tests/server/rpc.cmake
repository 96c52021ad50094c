# The server on a fake device, with gRPC inside the test: label `rpc`, which TSan runs leave out.
crout_library(rpc_fixture SOURCES rpc_fixture.cc
  DEPS crout::daemon crout::proto crout::test_support GTest::gmock)
foreach(test batch batch_solve gather cancel cache catalogue complex direct_solve identity iterations load lost_device mixed placement prepared
        quality reply request_id schur series series_stream singular sparse timings unary)
  crout_test(rpc_${test}_test LABELS rpc SOURCES rpc_${test}_test.cc DEPS crout::rpc_fixture)
endforeach()
crout_test(rpc_memory_test OWN_NEW LABELS rpc SOURCES rpc_memory_test.cc
  DEPS crout::rpc_fixture crout::test_refused_allocations)
crout_test(rpc_series_values_test LABELS rpc SOURCES rpc_series_values_test.cc
  DEPS crout::rpc_fixture crout::test_gzip)
crout_test(config_test LABELS rpc SOURCES config_test.cc DEPS crout::daemon)
crout_test(memory_return_test LABELS rpc SOURCES memory_return_test.cc DEPS crout::daemon)
crout_test(service_manager_test LABELS rpc SOURCES service_manager_test.cc DEPS crout::daemon)
crout_test(transfer_watch_test LABELS rpc SOURCES transfer_watch_test.cc DEPS crout::rpc)
foreach(test call_registry wire status reply_writer)
  crout_test(rpc_${test}_test LABELS rpc SOURCES rpc_${test}_test.cc DEPS crout::rpc)
endforeach()
foreach(test call_log job_ticket request_reader)
  crout_test(rpc_${test}_test LABELS rpc SOURCES rpc_${test}_test.cc
    DEPS crout::rpc crout::test_support)
endforeach()
