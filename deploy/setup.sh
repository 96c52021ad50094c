#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of deploy/packages.txt that are missing on this machine.
#
# usage: deploy/setup.sh [SECTION...]     sections of deploy/packages.txt; build and test by default
#
# Does nothing if all packages are installed. Without root it lists the missing packages and exits with status 1.
set -euo pipefail
list="$(dirname "${BASH_SOURCE[0]}")/packages.txt"
sections=("$@")
[ $# -gt 0 ] || sections=(build test)

packages_of() {
  awk -v section="[$1]" '/^\[/ { inside = ($0 == section) } inside && /^[a-z0-9]/' "$list"
}

installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null | sort -u)" = installed ]
}

if ! command -v apt-get >/dev/null; then
  echo "setup: this system has no apt-get. Install the packages that $list lists" >&2
  exit 1
fi

missing=()
for section in "${sections[@]}"; do
  mapfile -t packages < <(packages_of "$section")
  if [ ${#packages[@]} -eq 0 ]; then
    echo "setup: $list has no section '$section'" >&2
    exit 2
  fi
  for package in "${packages[@]}"; do
    if [[ $package == *" | "* ]] && installed "${package#* | }"; then continue; fi
    installed "${package% | *}" || missing+=("${package% | *}")
  done
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
  echo "setup: missing packages: ${missing[*]}" >&2
  echo "setup: run this command as root, or: apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

# The policy stops packages from starting servers: only the tests run Prometheus.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi

echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
