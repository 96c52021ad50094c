# The server on a fake device, with gRPC inside the test: label `rpc`, which TSan runs leave out.
crout_library(rpc_fixture SOURCES rpc_fixture.cc
  DEPS crout::daemon crout::proto crout::test_support GTest::gmock)
foreach(test cancel cache load prepared schur direct_solve)
  crout_test(rpc_${test}_test LABELS rpc SOURCES rpc_${test}_test.cc DEPS crout::rpc_fixture)
endforeach()
foreach(test wire status)
  crout_test(rpc_${test}_test LABELS rpc SOURCES rpc_${test}_test.cc DEPS crout::rpc)
endforeach()
