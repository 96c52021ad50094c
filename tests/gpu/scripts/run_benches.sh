#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the GPU benchmarks that complement run_suite.sh, one after the other, and writes their results
# as JSON. Finds programs and libraries like run_suite.sh.
#
#   run_benches.sh RESULTS_DIRECTORY
#
# Exit status: 0 if every benchmark ran.
set -u
if [ $# -ne 1 ]; then
  echo "usage: $0 RESULTS_DIRECTORY" >&2
  exit 2
fi
results=$1
mkdir -p "$results" || exit 2
. "$(dirname "$0")/find_program.sh"

failed=0
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
