#!/bin/sh
# Runs the GPU suite and the GPU benchmarks of an unpacked bundle (or, with CROUT_TESTS set to the
# directories that hold them, of a build tree) and leaves the results as JSON and XML.
#
#   run_suite.sh RESULTS_DIRECTORY
#
# CUDA libraries are looked for in LD_LIBRARY_PATH and then where the build was told to; real
# matrices in CROUT_MATRICES. Exit status: 0 if every test passed and every benchmark ran.
set -u
if [ $# -ne 1 ]; then
  echo "usage: $0 RESULTS_DIRECTORY" >&2
  exit 2
fi
results=$1
mkdir -p "$results" || exit 2
programs=${CROUT_TESTS:-$(dirname "$0")}
failed=0

find_program() {
  for directory in $programs; do
    if [ -x "$directory/$1" ]; then
      echo "$directory/$1"
      return
    fi
  done
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
date -u +%Y-%m-%dT%H:%M:%SZ
for test in gpu_kernels_test gpu_ops_test gpu_upload_test gpu_pipeline_test gpu_methods_test \
    gpu_iterative_test gpu_complex_test gpu_complex_jobs_test gpu_solver_test gpu_limits_test \
    gpu_large_test gpu_plugin_test gpu_fault_test gpu_environment_test; do
  program=$(find_program $test)
  if [ -z "$program" ]; then
    echo "$test: not found in: $programs" >&2
    failed=1
    continue
  fi
  if "$program" --gtest_brief=1 --gtest_output="json:$results/$test.json" \
      >"$results/$test.log" 2>&1; then
    echo "$test: passed"
  else
    echo "$test: FAILED"
    grep -E "Failure|FAILED|rror" -A 6 "$results/$test.log" | head -60
    failed=1
  fi
  tail -n 3 "$results/$test.log"
done

for bench in gpu_service_bench gpu_iterative_bench gpu_solve_bench; do
  program=$(find_program $bench)
  if [ -n "$program" ] && "$program" >"$results/$bench.json" 2>"$results/$bench.log"; then
    cat "$results/$bench.json"
  else
    echo "$bench: FAILED"
    failed=1
  fi
done
exit $failed
