# SPDX-License-Identifier: Apache-2.0
# Tests of crout-bench (built in crout_bench/), of the tables of its results, and of
# docs/performance.md and its subpages.
set(bench "${PROJECT_SOURCE_DIR}/tests/bench")
crout_test(bench_test LABELS tool DEPS crout::bench crout::test_support crout_blas
  SOURCES
    test/accuracy_test.cc test/cases_test.cc test/families_test.cc test/int8_product_test.cc
    test/runner_test.cc test/timing_test.cc int8_product/residue_system.cc)

find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME crout_bench_test COMMAND Python3::Interpreter "${bench}/test/bench_test.py"
  $<TARGET_FILE:crout-bench>)
set_tests_properties(crout_bench_test PROPERTIES LABELS e2e TIMEOUT 600)
add_test(NAME performance_doc_test COMMAND Python3::Interpreter "${bench}/performance_doc.py" --check)
set_tests_properties(performance_doc_test PROPERTIES LABELS tool TIMEOUT 60)
crout_find_python(python_with_matplotlib "matplotlib")
if(NOT python_with_matplotlib)
  set(python_with_matplotlib "${Python3_EXECUTABLE}")  # the test reports the missing module
endif()
add_test(NAME bench_pictures_test COMMAND "${python_with_matplotlib}" "${bench}/test/pictures_test.py")
set_tests_properties(bench_pictures_test PROPERTIES LABELS tool TIMEOUT 600 SKIP_RETURN_CODE 77)
