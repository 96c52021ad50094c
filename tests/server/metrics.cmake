crout_test(metrics_test LABELS unit SOURCES metrics_test.cc process_metrics_test.cc DEPS crout::metrics)
