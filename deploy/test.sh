#!/bin/bash
# Every test, from a bare machine: installs what is missing (as root), checks formats and
# configurations, builds with warnings as errors (and CUDA where a toolkit is found), runs all
# tests, then the unit tests and fuzz targets under ASan and UBSan. ThreadSanitizer, a third build, is
# left to its preset: cmake --preset tsan && cmake --build --preset tsan --target tests_unit &&
# ctest --preset tsan.
#
# usage: deploy/test.sh
#   CROUT_FUZZ_SECONDS   for each fuzz target, and for malformed HTTP at the daemon; 60 by default
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fuzz_seconds=${CROUT_FUZZ_SECONDS:-60}
unset CROUT_FUZZ_SECONDS  # CTest's own run of what takes it is a short one
logs=build/test-logs
mkdir -p "$logs"
summary=()
TIMEFORMAT='-- %lR (processor: %lU user, %lS system)'
current=start
trap 'echo "deploy/test.sh: FAILED in stage: $current" >&2' ERR

stage() {  # stage NAME COMMAND...
  current=$1
  local begin=$SECONDS
  printf '\n== %s\n' "$current"
  time "${@:2}"
  summary+=("$(printf '%5d s  %s' $((SECONDS - begin)) "$current")")
}

formatting() {
  find kernels server client tests \
    \( -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 clang-format --dry-run --Werror
}

monitoring() {
  promtool check config deploy/prometheus/prometheus.yml
  promtool check rules deploy/prometheus/rules/*.yml
  promtool test rules deploy/prometheus/tests/*.yml
  # What docs/operations.md has Prometheus do over TLS, without the files that it names.
  sed -n '/^scrape_configs:/,/^```$/{/^```$/d;p}' docs/operations.md >"$logs/scrape_over_tls.yml"
  promtool check config --syntax-only "$logs/scrape_over_tls.yml"
  if command -v amtool >/dev/null; then
    amtool check-config deploy/alertmanager/alertmanager.yml
  else
    echo "amtool not found: alertmanager.yml not checked"
  fi
  local profile
  for profile in cpu gpu; do
    docker-compose --profile "$profile" config --quiet
  done
  echo "docker-compose.yml: valid"
  # The program that it names is not installed here.
  if command -v systemd-analyze >/dev/null; then
    mkdir -p build/systemd
    sed 's#/opt/crout/bin/croutd#/bin/true#' deploy/croutd.service >build/systemd/croutd.service
    systemd-analyze verify build/systemd/croutd.service
    echo "croutd.service: valid"
  else
    echo "systemd-analyze not found: croutd.service not checked"
  fi
}

# Pinned: another version of a linter finds other things. Installs the client on the way, as a user does,
# with the newest of what it needs.
python_lint() {
  python3 -m venv --clear build/python-lint
  build/python-lint/bin/pip install --quiet -r client/python/requirements-lint.txt ./client/python
  (cd client/python && ../../build/python-lint/bin/ruff format --check . &&
    ../../build/python-lint/bin/ruff check . && ../../build/python-lint/bin/mypy -p crout)
}

# Where no Python has what the client needs, CMake leaves its tests out.
python_tests_are_there() { ctest --preset ci -N -L '^python$' | grep 'Total Tests: [1-9]'; }

proto_lint() {
  if command -v buf >/dev/null; then
    (cd proto && buf lint)
  else
    echo "buf not found: proto lint skipped"
  fi
}

configure() {  # configure PRESET
  cmake --preset "$1" "${configure_options[@]}" >"$logs/configure-$1.log" ||
    { cat "$logs/configure-$1.log"; return 1; }
  grep 'Crout:' "$logs/configure-$1.log"
}

# One target for each seed corpus.
fuzz_targets() { find tests/fuzz/corpus -mindepth 1 -maxdepth 1 -type d -printf '%f_fuzz\n' | sort; }

build_asan() {
  local targets
  mapfile -t targets < <(fuzz_targets)
  cmake --build --preset asan --target tests_unit tests_rpc "${targets[@]}"
}

# All at once: a fuzz target keeps one core busy.
fuzz() {
  local target name running=() failed=0
  CROUT_FUZZ_SECONDS=$fuzz_seconds build/ci/tests/e2e/e2e_http_fuzz_test >"$logs/daemon_http.log" 2>&1 &
  running+=("daemon_http:$!")
  for target in $(fuzz_targets); do
    name=${target%_fuzz}
    local options=("-max_total_time=$fuzz_seconds" -print_final_stats=1 -verbosity=0
      "-artifact_prefix=$logs/")
    [ -e "tests/fuzz/$name.dict" ] && options+=("-dict=tests/fuzz/$name.dict")
    mkdir -p "$logs/$name"
    "build/asan/tests/fuzz/$target" "${options[@]}" "$logs/$name" "tests/fuzz/corpus/$name" \
      >"$logs/$target.log" 2>&1 &
    running+=("$target:$!")
  done
  for target in "${running[@]}"; do
    wait "${target#*:}" || failed=1
    echo "-- ${target%:*}"
    tail -n 5 "$logs/${target%:*}.log"
  done
  return $failed
}

all_tests() { ctest --preset ci 2>&1 | tee "$logs/ctest.log"; }

stage "set-up" deploy/setup.sh
source deploy/build.sh
stage "format" formatting
stage "monitoring configuration" monitoring
stage "proto lint" proto_lint
stage "Python: format, lint, types" python_lint
# Where no GPU is, nothing runs the device's code: it is compiled to PTX, not on to one architecture's code, and
# optimised no more than nvcc must.
if [[ "${configure_options[*]}" != *CUDA_ARCHITECTURES* ]]; then
  configure_options+=(-DCROUT_CUDA_ARCHITECTURES=90-virtual)
  if nvcc --help 2>/dev/null | grep -e --Ofast-compile >/dev/null; then
    configure_options+=("-DCMAKE_CUDA_FLAGS=--Ofast-compile max")
  fi
fi
stage "configure ci" configure ci
stage "Python: tests are there" python_tests_are_there
stage "build ci" cmake --build --preset ci
stage "all tests" all_tests
stage "TLS: protocols and suites" deploy/tls/scan.sh build/ci/server/croutd
stage "configure asan" configure asan
stage "build asan: unit and RPC tests, fuzz targets" build_asan
stage "unit and RPC tests under ASan and UBSan" ctest --preset asan -L '^(unit|rpc)$'
stage "fuzz targets, $fuzz_seconds s each" fuzz

printf '\n== Time by stage\n'
printf '%s\n' "${summary[@]}"
printf '\n== All tests passed; of the full run:\n'
sed -n '/tests passed/,$p' "$logs/ctest.log"
