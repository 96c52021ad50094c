#!/bin/sh
# Runs the tests of single kernels under each tool of compute-sanitizer, which comes with the CUDA
# toolkit.
#
#   sanitize.sh [DIRECTORY]     that holds gpu_kernels_test and gpu_sparse_test; this script's own by default
#
# CUDA libraries are looked for as run_suite.sh says. Exit status: 0 if no tool found anything.
set -u
program=${1:-$(dirname "$0")}/gpu_kernels_test
if [ ! -x "$program" ]; then
  echo "$0: not found: $program" >&2
  exit 2
fi
export CROUT_WATCHED=1  # Tests that would take minutes take fewer members.
failed=0
for tool in memcheck initcheck synccheck racecheck; do
  options=
  # Block rows have more barriers than synccheck tracks of itself: they overflow, and a kernel fails.
  [ $tool = synccheck ] && options=--num-cuda-barriers=4096
  echo "== $tool"
  compute-sanitizer --tool $tool --error-exitcode 1 $options "$program" --gtest_brief=1 || failed=1
done
# Its contexts of the GPU run kernels with clusters, which racecheck does not follow.
echo "== memcheck, sparse LU"
compute-sanitizer --tool memcheck --error-exitcode 1 "$(dirname "$program")/gpu_sparse_test" --gtest_brief=1 \
  --gtest_filter='*.Solves/f64:*.LeavesSchurComplements/c128:*.SolvesBesideKeptUnknowns/f32:*.GivesTheSameBitsInLessMemory/f64:*.GivesTheSameBitsAgain/c64' || failed=1
exit $failed
