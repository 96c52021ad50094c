crout_library(rpc_fixture SOURCES rpc_fixture.cc DEPS
                  crout::daemon crout::proto crout::test_support GTest::gmock)
    crout_test(rpc_cancel_test LABELS unit SOURCES rpc_cancel_test.cc DEPS crout::rpc_fixture)
        crout_test(rpc_cache_test LABELS unit SOURCES rpc_cache_test.cc DEPS crout::rpc_fixture)
            crout_test(rpc_load_test LABELS unit SOURCES rpc_load_test.cc DEPS crout::rpc_fixture)
                crout_test(rpc_wire_test LABELS unit SOURCES rpc_wire_test.cc DEPS crout::rpc)
                    crout_test(
                        rpc_status_test LABELS unit SOURCES rpc_status_test.cc DEPS crout::rpc)
