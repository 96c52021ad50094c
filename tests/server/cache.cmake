crout_test(cache_handle_test LABELS unit SOURCES cache_handle_test.cc DEPS crout::cache)
foreach(test factor_cache lease tenant_loads index tiers solve stress)
  crout_test(cache_${test}_test LABELS unit SOURCES cache_${test}_test.cc cache_fixture.cc
    DEPS crout::cache crout::test_support)
endforeach()
crout_test(cache_memory_test OWN_NEW LABELS unit SOURCES cache_memory_test.cc cache_fixture.cc
  DEPS crout::cache crout::test_support crout::test_refused_allocations)
