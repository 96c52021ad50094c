crout_test(metrics_test LABELS unit SOURCES metrics_test.cc DEPS crout::metrics)
crout_test(metrics_endpoint_test LABELS unit SOURCES metrics_endpoint_test.cc DEPS crout::metrics)
