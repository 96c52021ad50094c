#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the GPU tests of an unpacked bundle and writes their results as JSON. If CROUT_TESTS is a list
# of test directories of a build tree, runs the tests there. run_benches.sh runs the benchmarks.
#
#   run_suite.sh RESULTS_DIRECTORY
#
# The programs search CUDA libraries in LD_LIBRARY_PATH and then in the build's library path. Real
# matrices are in the directory CROUT_MATRICES. Exit status: 0 if every test passed.
set -u
if [ $# -ne 1 ]; then
  echo "usage: $0 RESULTS_DIRECTORY" >&2
  exit 2
fi
results=$1
mkdir -p "$results" || exit 2
. "$(dirname "$0")/find_program.sh"

# run_test NAME REPORT: runs a program and writes REPORT.json and REPORT.log. Also writes REPORT.failed
# if a test fails or there is no such program.
run_test() {
  program=$(find_program "$1")
  report=$results/$2
  rm -f "$report.failed"
  if [ -z "$program" ]; then
    echo "$1: not found in: $programs" | tee "$report.failed" >&2
  elif "$program" --gtest_brief=1 --gtest_output="json:$report.json" >"$report.log" 2>&1; then
    echo "$2: passed"
  else
    echo "$2: FAILED" | tee "$report.failed"
    grep -E "Failure|FAILED|rror" -A 6 "$report.log" | head -60
  fi
}

# Most tests wait for new contexts and for results on the host, so several lanes run concurrently.
# Each lane runs a part of the tests of every program. Waiting threads yield their cores.
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)  # these variables limit nproc
lanes=$((cores / 2))
[ "$lanes" -gt 6 ] && lanes=6
[ "$lanes" -lt 1 ] && lanes=1

run_lane() {
  export GTEST_TOTAL_SHARDS=$lanes GTEST_SHARD_INDEX="$1" OMP_WAIT_POLICY=passive
  export OMP_NUM_THREADS=$((cores / lanes))
  for test in gpu_solver_test gpu_methods_test gpu_complex_test gpu_complex_jobs_test \
      gpu_sparse_test gpu_pipeline_test gpu_kernels_test gpu_ops_test gpu_iterative_test \
      gpu_upload_test gpu_out_of_core_test; do
    run_test $test "$test.$1"
  done
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
date -u +%Y-%m-%dT%H:%M:%SZ
lane=0
while [ $lane -lt "$lanes" ]; do
  run_lane $lane &
  lane=$((lane + 1))
done
wait

# These tests measure times, fill the memory or break the context, so they run alone.
for test in gpu_cudss_test gpu_limits_test gpu_large_test gpu_plugin_test gpu_fault_test gpu_environment_test; do
  run_test $test $test
done
! ls "$results"/*.failed >/dev/null 2>&1
