#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs all tests, also on a bare machine: installs missing packages (as root), checks formats, configurations and
# documents, builds with warnings as errors (with CUDA if a toolkit is found), and runs all tests. Then runs unit tests,
# RPC tests and fuzz targets under ASan and UBSan. By default the sanitizers cover the test programs of changed folders
# and a third of all others, at most half of all (tests/ci/sanitized_programs.py).
#
# usage: deploy/test.sh [--long]
#   --long               all unit and RPC tests under the sanitizers, 60 s of fuzzing for each target, the unit tests
#                        under ThreadSanitizer, an hour of mixed calls with exact solutions, ten minutes of calls
#                        to a server that is killed and ten to three replicas, 3000 calls through each proxy while
#                        replicas restart, the image built by the whole Dockerfile, the line coverage of unit and RPC
#                        tests, and the tests with PETSc (elsewhere only where PETSc is installed)
#   CROUT_FUZZ_SECONDS   seconds for each fuzz target and for malformed HTTP at the daemon; 20 by default
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
long=0
case "${1:-}" in
  "") ;;
  --long) long=1 ;;
  *) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
esac
budget_minutes=45
fuzz_seconds=${CROUT_FUZZ_SECONDS:-$((long ? 60 : 20))}
unset CROUT_FUZZ_SECONDS  # CTest also runs the daemon's HTTP fuzz test, but only briefly
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
  find kernels server client rank tests \
    \( -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 clang-format --dry-run --Werror
}

monitoring() {
  promtool check config deploy/prometheus/prometheus.yml
  promtool check rules deploy/prometheus/rules/*.yml
  promtool test rules deploy/prometheus/tests/*.yml
  # The scrape configuration over TLS from docs/operations/security.md; its certificates do not exist here.
  sed -n '/^scrape_configs:/,/^```$/{/^```$/d;p}' docs/operations/security.md >"$logs/scrape_over_tls.yml"
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
  if command -v systemd-analyze >/dev/null; then
    mkdir -p build/systemd
    sed 's#/opt/crout/bin/croutd#/bin/true#' deploy/croutd.service >build/systemd/croutd.service
    systemd-analyze verify build/systemd/croutd.service
    echo "croutd.service: valid"
  else
    echo "systemd-analyze not found: croutd.service not checked"
  fi
}

# Linter versions are pinned, because the findings differ between versions. The client is installed as users install
# it, with the newest packages that it accepts.
python_lint() {
  python3 -m venv --clear build/python-lint
  build/python-lint/bin/pip install --quiet -r client/python/requirements-lint.txt ./client/python
  (cd client/python && ../../build/python-lint/bin/ruff format --check . &&
    ../../build/python-lint/bin/ruff check . && ../../build/python-lint/bin/mypy -p crout)
}

# CMake omits the Python client's tests if no Python has the packages that they need.
python_tests_are_there() { ctest --preset ci -N -L '^python$' | grep 'Total Tests: [1-9]'; }

# The contract may only grow: proto/contract.binpb has the messages that clients rely on (CONTRIBUTING.md).
proto_lint() {
  (cd proto && ../build/python-lint/bin/buf lint &&
    ../build/python-lint/bin/buf breaking --against contract.binpb --path crout/v1)
}

configure() {  # configure PRESET
  cmake --preset "$1" "${configure_options[@]}" >"$logs/configure-$1.log" ||
    { cat "$logs/configure-$1.log"; return 1; }
  grep 'Crout:' "$logs/configure-$1.log"
}

# Prints the fuzz targets, one for each seed corpus.
fuzz_targets() { find tests/fuzz/corpus -mindepth 1 -maxdepth 1 -type d -printf '%f_fuzz\n' | sort; }

# Prints the test programs for ASan and UBSan, without the fuzz targets.
sanitized_programs() {
  local programs
  programs=$(ctest --preset asan -N -L '^(unit|rpc)$' | sed -n 's/^ *Test *#[0-9]*: //p' |
    grep -v '_fuzz_seeds$' | sed 's/\.[0-9]*$//' | uniq)
  if ((long)); then
    printf '%s\n' "$programs"
  else
    tests/ci/sanitized_programs.py <<<"$programs"
  fi
}

build_asan() {
  local programs targets
  programs=$(sanitized_programs)
  [ -n "$programs" ]
  mapfile -t targets < <(printf '%s\n' "$programs"; fuzz_targets)
  printf '%s\n' "${targets[@]}"
  cmake --build --preset asan --target "${targets[@]}"
}

asan_tests() {
  local pattern
  pattern=$(sanitized_programs | paste -sd '|')
  [ -n "$pattern" ]
  tests/ci/run_ctest.py asan -R "^(($pattern)(\.[0-9]+)?|.*_fuzz_seeds)\$" 2>&1 | tee "$logs/ctest-asan.log"
}

# Without the emulations of device code, in which several threads may write the same value to one place.
tsan_tests() {
  cmake --preset tsan >"$logs/configure-tsan.log"
  cmake --build --preset tsan --target tests_unit
  ctest --preset tsan
}

# Writes line coverage by file to $logs/coverage.txt and prints the total. There is no required coverage.
coverage() {
  configure coverage
  cmake --build --preset coverage --target tests_unit tests_rpc
  find build/coverage -name '*.gcda' -delete  # Counts of an earlier run would add up.
  ctest --preset coverage >"$logs/ctest-coverage.log" || { tail -n 50 "$logs/ctest-coverage.log"; return 1; }
  gcovr --root . --filter kernels/ --filter server/ --filter client/ --txt "$logs/coverage.txt" --print-summary \
    build/coverage
}

# Runs all targets at once; each uses one core.
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

soak() {
  build/ci/tests/python/environment/bin/python client/python/tests/soak.py build/ci/tests/e2e/croutd_test
}

killed_server() {
  build/ci/tests/python/environment/bin/python client/python/tests/history.py build/ci/server/croutd 600
}

# CTest runs this test with fewer calls.
replicas() {
  CROUT_CALLS=3000 build/ci/tests/e2e/s3_environment/bin/python tests/e2e/s3/s3_server.py \
    build/ci/tests/python/environment/bin/python tests/e2e/deployment/replicas_test.py build/ci/server/croutd
}

lost_replicas() {
  build/ci/tests/e2e/s3_environment/bin/python tests/e2e/s3/s3_server.py \
    build/ci/tests/python/environment/bin/python tests/e2e/deployment/replicas_history.py build/ci/server/croutd 600
}

# The environment of the linters also has kubernetes-validate.
kubernetes() { build/python-lint/bin/python tests/e2e/deployment/kubernetes_test.py build/ci/server/croutd; }

whole_image() {
  build/ci/tests/python/environment/bin/python tests/e2e/deployment/image_test.py build/ci --full
}

all_tests() { tests/ci/run_ctest.py ci 2>&1 | tee "$logs/ctest.log"; }

sections=(build test)
((long)) && sections+=(petsc)
stage "set-up" deploy/setup.sh "${sections[@]}"
source deploy/build.sh
stage "format" formatting
stage "monitoring configuration" monitoring
stage "phrases and lengths of documents" tests/ci/prose.py
stage "Python: format, lint, types" python_lint
stage "proto: lint, compatibility" proto_lint
# Without a GPU no device code runs. It is then compiled only to PTX, with nvcc's lowest optimisation.
if [[ "${configure_options[*]}" != *CUDA_ARCHITECTURES* ]]; then
  configure_options+=(-DCROUT_CUDA_ARCHITECTURES=90-virtual)
  if nvcc --help 2>/dev/null | grep -e --Ofast-compile >/dev/null; then
    configure_options+=("-DCMAKE_CUDA_FLAGS=--Ofast-compile=max")
  fi
fi
stage "configure ci" configure ci
stage "Python: tests are there" python_tests_are_there
stage "build ci" cmake --build --preset ci
stage "all tests" all_tests
stage "Kubernetes manifests" kubernetes
stage "TLS: protocols and suites" deploy/tls/scan.sh build/ci/server/croutd
stage "configure asan" configure asan
stage "build asan: unit and RPC tests, fuzz targets" build_asan
stage "unit and RPC tests under ASan and UBSan" asan_tests
stage "fuzz targets, $fuzz_seconds s each" fuzz
if ((long)); then
  stage "unit tests under ThreadSanitizer" tsan_tests
  stage "soak: mixed calls with exact solutions" soak
  stage "calls to a server that is killed" killed_server
  stage "calls to replicas that are restarted" replicas
  stage "calls to replicas that are killed, paused and stopped" lost_replicas
  stage "image of the whole Dockerfile" whole_image
  stage "line coverage" coverage
fi

printf '\n== Time by stage\n'
printf '%s\n' "${summary[@]}"
printf '%5d s  in all\n' "$SECONDS"
if ((!long && SECONDS > budget_minutes * 60)); then
  echo "WARNING: the run took more than its budget of $budget_minutes minutes"
fi
printf '\n== All tests passed; of the full run:\n'
sed -n '/tests passed/,$p' "$logs/ctest.log"
