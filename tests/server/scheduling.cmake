crout_test(scheduling_budget_test LABELS unit SOURCES scheduling_budget_test.cc
  DEPS crout::scheduling)
crout_test(scheduling_scheduler_test LABELS unit SOURCES scheduling_scheduler_test.cc
  DEPS crout::scheduling crout::test_support)
crout_test(scheduling_memory_test OWN_NEW LABELS unit SOURCES scheduling_memory_test.cc
  DEPS crout::scheduling crout::test_support crout::test_refused_allocations)
crout_test(scheduling_pool_test LABELS unit SOURCES scheduling_pool_test.cc
  DEPS crout::scheduling crout::test_support)
crout_test(scheduling_gather_test LABELS unit SOURCES scheduling_gather_test.cc
  DEPS crout::scheduling crout::test_support)
