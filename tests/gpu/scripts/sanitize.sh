#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of single kernels with each tool of compute-sanitizer, and some tests of sparse LU
# with memcheck. compute-sanitizer is part of the CUDA toolkit.
#
#   sanitize.sh [DIRECTORY]
#
# DIRECTORY contains gpu_kernels_test and gpu_sparse_test; the default is this script's directory.
# Finds CUDA libraries like run_suite.sh. Exit status: 0 if no tool found an error.
set -u
program=${1:-$(dirname "$0")}/gpu_kernels_test
if [ ! -x "$program" ]; then
  echo "$0: not found: $program" >&2
  exit 2
fi
export CROUT_WATCHED=1  # slow tests use fewer members
failed=0
for tool in memcheck initcheck synccheck racecheck; do
  options=
  # The kernel of block rows has more barriers than synccheck tracks by default, and would fail.
  [ $tool = synccheck ] && options=--num-cuda-barriers=4096
  echo "== $tool"
  compute-sanitizer --tool $tool --error-exitcode 1 $options "$program" --gtest_brief=1 || failed=1
done
# The contexts of this program run kernels with clusters, which racecheck does not support.
echo "== memcheck, sparse LU"
compute-sanitizer --tool memcheck --error-exitcode 1 "$(dirname "$program")/gpu_sparse_test" --gtest_brief=1 \
  --gtest_filter='*.Solves/f64:*.ComputesSchurComplements/c128:*.SolvesWithKeptUnknowns/f32:*.GivesTheSameBitsInLessMemory/f64:*.GivesTheSameBitsAgain/c64' || failed=1
exit $failed
