crout_test(trace_test LABELS unit SOURCES trace_test.cc
  DEPS crout::trace crout::test_support nlohmann_json::nlohmann_json)
