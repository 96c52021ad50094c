# SPDX-License-Identifier: Apache-2.0
# Runs the queries of the dashboard against a real Prometheus that scrapes a real daemon.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME dashboard_test
  COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/dashboard_test.py"
          $<TARGET_FILE:croutd> $<TARGET_FILE:croutctl>
          $<TARGET_FILE:croutd_test>)
set_tests_properties(dashboard_test PROPERTIES LABELS e2e TIMEOUT 600 SKIP_RETURN_CODE 77 COST 20)
