#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a new user's first steps with each interface (SURFACE) of Crout, from an installed tree or an unpacked bundle:
# installation, first solve, first error, and a restart of the daemon. Prints the seconds of each step. Stops at the
# first step that fails or does not print the expected text.
#
# usage: deploy/new_user.sh PREFIX [SURFACE...]     of: operator croutctl python c fortran cpp; all by default
#
# Runs in an empty home directory, which is removed at the end. Uses only PATH, PIP_* and CROUT_VENV_OPTIONS of the
# caller's environment. CROUT_VENV_OPTIONS: options of python -m venv, such as --system-site-packages without a network.
# deploy/clean_machine.sh runs this script in a new Debian.
set -Eeuo pipefail
if [ -z "${CROUT_NEW_USER_HOME:-}" ]; then
  [ $# -ge 1 ] || { sed -n '/^# usage/,/^#$/p' "$0" >&2; exit 2; }
  home=$(mktemp -d)
  trap 'rm -rf "$home"' EXIT
  mapfile -t kept < <(env | grep '^PIP_' || true)
  env -i "${kept[@]}" HOME="$home" CROUT_NEW_USER_HOME="$home" CROUT_VENV_OPTIONS="${CROUT_VENV_OPTIONS:-}" \
    PATH="$(realpath "$1")/bin:$PATH" bash "$0" "$(realpath "$1")" "${@:2}"
  exit
fi
prefix=$1
shift
[ $# -gt 0 ] || set -- operator croutctl python c fortran cpp
cd "$HOME"
daemon=
address=127.0.0.1:0
metrics=127.0.0.1:0
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true' EXIT
trap 'echo "deploy/new_user.sh: FAILED at: ${step:-start}" >&2; tail -n 5 log out 2>/dev/null >&2 || true' ERR

# Starts the daemon and exports its address. A restart uses the same ports, because clients have stored the addresses.
start() {
  exec {ready}< <(exec croutd --config="$prefix/share/crout/croutd.toml" --listen="$address" --metrics-listen="$metrics" \
    --drain-grace=0s 2>log)
  daemon=$!
  local line
  read -r -t 60 line <&"$ready"
  address=$(sed -n 's/^croutd ready listen=\([^ ,]*\).*/\1/p' <<<"$line")
  metrics=$(sed -n 's/^croutd ready .*metrics=\(.*\)$/\1/p' <<<"$line")
  [ -n "$address" ]
  export CROUT_SERVER=$address
}

stop() {
  kill -TERM "$daemon"
  wait "$daemon"
  exec {ready}<&-
  daemon=
}

prints() {  # prints TEXT COMMAND...: checks that the command prints the text; ignores its exit status
  "${@:2}" >out 2>&1 || true
  grep -qF -- "$1" out || { echo "'${*:2}' does not print: $1" >&2; return 1; }
}

page() {  # page PATH: prints the reply of the metrics port
  exec 3<>"/dev/tcp/${metrics%:*}/${metrics##*:}"
  printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
  cat <&3
  exec 3>&-
}

operator_install() { prints "settings are valid" croutd --config="$prefix/share/crout/croutd.toml" --check-config; }
operator_solve() { prints "<title>croutd" page / && prints "200 OK" page /readyz && prints crout_build_info page /metrics; }
operator_error() {
  printf 'lisen = "127.0.0.1:1"\n' >wrong.toml
  prints "lisen" croutd --config=wrong.toml --check-config
  prints "If another daemon serves this address" croutd --listen="$address" --metrics-listen=127.0.0.1:0
}
operator_again() { operator_solve; }

croutctl_install() { prints "croutctl 0." croutctl version; }
croutctl_solve() {
  printf '4 1\n1 3\n' >A.txt
  prints 'pivot_growth' croutctl --json factor A.txt --name=first
  prints "backward_error" croutctl solve first --ones -o x.txt
}
croutctl_error() {
  prints "start croutd there" croutctl --server=127.0.0.1:1 status
  prints "the nearest is solve" croutctl slove first
}
croutctl_again() { prints "the server was restarted" croutctl solve first --ones && croutctl_solve; }

python_install() {
  # shellcheck disable=SC2086  # one word for each option
  python3 -m venv $CROUT_VENV_OPTIONS env
  env/bin/pip install --quiet "$prefix/share/crout/python"
}
python_solve() {
  prints "[0.18181818 0.27272727]" env/bin/python -c '
import crout
c = crout.connect()
f = c.lu_factor([[4.0, 1.0], [1.0, 3.0]], name="python")
open("handle", "w").write(f.handle)
print(f.solve([1.0, 1.0]))'
}
python_error() { prints "Start croutd at" env/bin/python -c 'import crout; crout.connect("127.0.0.1:1").server_info()'; }
python_again() {
  prints "Factor the matrix again" env/bin/python -c 'import crout; crout.connect().lu_solve(open("handle").read(), [1.0, 1.0])'
  python_solve
}

by_hand() { PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config "$@" crout; }
examples=$prefix/share/crout/examples
c_install() {
  # shellcheck disable=SC2046  # one word for each option
  cc -o solve_c "$examples/solve.c" $(by_hand --cflags --libs)
}
c_solve() { prints "x = 1.0000 2.0000 3.0000" ./solve_c "$address"; }
c_error() { prints "start croutd there" ./solve_c 127.0.0.1:1; }
c_again() { c_solve; }

fortran_install() {
  # shellcheck disable=SC2046
  gfortran -o solve_fortran $(by_hand --variable=fortran_module) "$examples/solve.f90" $(by_hand --libs)
}
fortran_solve() { prints "x =  1.0000  2.0000  3.0000" ./solve_fortran "$address"; }
fortran_error() { prints "start croutd there" ./solve_fortran 127.0.0.1:1; }
fortran_again() { fortran_solve; }

cpp_install() {
  cmake -S "$examples" -B cpp -DCMAKE_PREFIX_PATH="$prefix" >out 2>&1
  cmake --build cpp --target solve_cc >>out 2>&1
}
cpp_solve() { prints "x = 1 2 3" cpp/solve_cc "$address"; }
cpp_error() { prints "start croutd there" cpp/solve_cc 127.0.0.1:1; }
cpp_again() { cpp_solve; }

begin() { step=$*; began=$EPOCHREALTIME; }
finish() { printf '%-10s %-14s %7.2f s\n' "${step%% *}" "${step#* }" "$(awk "BEGIN { print $EPOCHREALTIME - $began }")"; }

for surface in "$@"; do
  begin "$surface install"
  "${surface}_install"
  finish
done
begin "daemon start"
start
finish
for surface in "$@"; do
  begin "$surface first solve"
  "${surface}_solve"
  finish
  begin "$surface first error"
  "${surface}_error"
  finish
done
begin "daemon restart"
stop
start
finish
for surface in "$@"; do
  begin "$surface after restart"
  "${surface}_again"
  finish
done
stop
echo "deploy/new_user.sh: all steps passed"
