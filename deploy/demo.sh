#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Demonstrates Crout on a bare machine: installs missing packages (as root), builds croutd and starts it on
# the available device. Factors a matrix, solves twice with the cached factor, prints timings and metrics,
# and stops the daemon.
#
# usage: deploy/demo.sh [A.mtx]     a square Matrix Market file; without one, a convection-diffusion
#                                   problem of order 1024 that this script writes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -le 1 ] || { echo "usage: deploy/demo.sh [A.mtx]" >&2; exit 2; }
matrix=${1:+$(realpath "$1")}

section() { printf '\n== %s\n' "$*"; }

section "Set-up and build"
deploy/setup.sh build
source deploy/build.sh
work=$(mktemp -d)
# With a GPU this is a build of the preset `release`. Without a GPU it is a fast build for this demonstration
# alone: without CUDA, with unity builds and little optimisation.
preset=release
build=build/release
gpus=$(nvidia-smi -L 2>/dev/null || true)
if [[ "$gpus" != GPU* ]]; then
  preset=host
  build=build/demo
  configure_options+=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=10
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")
fi
cmake --preset "$preset" -B "$build" -DBUILD_TESTING=OFF "${configure_options[@]}" >"$work/configure.log" ||
  { cat "$work/configure.log"; exit 1; }
grep 'Crout:' "$work/configure.log"
cmake --build "$build" --target croutd croutctl
croutd=$build/server/croutd
croutctl=$build/client/cli/croutctl

# Prints the matrix of a 2-D convection-diffusion problem on a grid of m x m inner points with a five-point
# stencil: central differences for -Laplace(u), upwind differences for the wind (w1, w2).
convection_diffusion() {
  awk -v m="$1" -v w1=20 -v w2=10 'BEGIN {
    h = 1 / (m + 1); n = m * m
    print "%%MatrixMarket matrix coordinate real general"
    print n, n, 5 * n - 4 * m
    for (j = 1; j <= m; j++) for (i = 1; i <= m; i++) {
      k = (j - 1) * m + i
      print k, k, 4 + h * (w1 + w2)
      if (i > 1) print k, k - 1, -1 - h * w1
      if (i < m) print k, k + 1, -1
      if (j > 1) print k, k - m, -1 - h * w2
      if (j < m) print k, k + m, -1
    }
  }'
}
if [ -z "$matrix" ]; then
  matrix=$work/convection_diffusion.mtx
  convection_diffusion 32 >"$matrix"
fi

section "Start croutd"
"$croutd" --listen=127.0.0.1:0 --metrics-listen=127.0.0.1:0 >"$work/ready" 2>"$work/log" &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 300); do
  grep -q '^croutd ready' "$work/ready" && break
  kill -0 "$daemon" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
  sleep 0.1
done
cat "$work/ready"
listen=$(sed -n 's/^croutd ready listen=\([^ ,]*\).*/\1/p' "$work/ready")
metrics=$(sed -n 's/^croutd ready .*metrics=\(.*\)$/\1/p' "$work/ready")
export CROUT_SERVER=$listen
"$croutctl" devices

section "Factor $(basename "$matrix")"
"$croutctl" factor "$matrix" --name=demo --json >"$work/factor.json"
cat "$work/factor.json"
handle=$(grep -o '"handle": *"[a-z2-7]*"' "$work/factor.json" | head -1 | cut -d'"' -f4)
for attempt in first second; do
  section "Solve with the cached factor, $attempt time: a right-hand side of ones"
  "$croutctl" solve "$handle" --ones --json
done

section "Metrics (http://$metrics/metrics), of those that are not zero"
exec 3<>"/dev/tcp/${metrics%:*}/${metrics##*:}"
printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
grep -E '^crout_' <&3 | grep -vE '_bucket\{| 0$' | sort
exec 3>&-

section "Stop"
"$croutctl" release "$handle"
kill -TERM "$daemon"
wait "$daemon"
echo "croutd stopped with status 0"
