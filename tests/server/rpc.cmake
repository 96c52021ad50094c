# The server on a fake device, with gRPC inside the test: label `rpc`, which TSan runs leave out.
crout_library(rpc_fixture SOURCES rpc_fixture.cc
  DEPS crout::daemon crout::proto crout::test_support GTest::gmock)
foreach(test batch batch_request_id batch_solve cache cancel catalogue complex direct_solve echelon gather identity iterations klu load lost_device
        mixed multifrontal placement prepared quality reply request_id schur series series_start series_stream series_unread singular sparse sparse_cancel sparse_download
        sparse_schur sparse_sequences sparse_series sparse_values sparse_workspace timings unary)
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
foreach(test call_registry reflection wire status reply_writer)
  crout_test(rpc_${test}_test LABELS rpc SOURCES rpc_${test}_test.cc DEPS crout::rpc)
endforeach()
foreach(test call_log job_ticket request_reader)
  crout_test(rpc_${test}_test LABELS rpc SOURCES rpc_${test}_test.cc
    DEPS crout::rpc crout::test_support)
endforeach()
crout_test(tcp_listener_test LABELS rpc SOURCES tcp_listener_test.cc
  DEPS crout::daemon crout::test_support)
