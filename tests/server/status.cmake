crout_test(status_page_test LABELS unit SOURCES status_page_test.cc status_figures_test.cc
  DEPS crout::status crout::test_support)
