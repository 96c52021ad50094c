#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of a build tree repeatedly, as on a small, busy machine: on two cores, together with
# four busy loops. A test that fails only here depends on timing.
#
# usage: tests/repeat.sh BUILD_DIRECTORY TIMES [CTEST_ARGUMENTS...]
#
# Writes the output of each run to BUILD_DIRECTORY/repeat. Exit status: 0 if every run passed.
set -u
if [ $# -lt 2 ]; then
  echo "usage: $0 BUILD_DIRECTORY TIMES [CTEST_ARGUMENTS...]" >&2
  exit 2
fi
build=$1
times=$2
shift 2
logs=$build/repeat
mkdir -p "$logs" || exit 2

first_two_cores() {
  local range
  for range in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do
    seq "${range%-*}" "${range#*-}"
  done | head -n 2 | paste -sd,
}
taskset -cp "$(first_two_cores)" $$ >/dev/null || exit 2

loops=()
trap 'kill "${loops[@]}" 2>/dev/null' EXIT
trap 'exit 1' INT TERM
for _ in 1 2 3 4; do
  while :; do :; done &
  loops+=($!)
done

failed=0
for ((run = 1; run <= times; ++run)); do
  if ctest --test-dir "$build" --parallel 2 --output-on-failure "$@" >"$logs/$run.log" 2>&1; then
    result=passed
  else
    result=FAILED
    failed=1
  fi
  echo "run $run of $times: $result: $(grep 'tests passed' "$logs/$run.log")"
  sed -n '/^The following tests FAILED/,$p' "$logs/$run.log"
done
exit $failed
