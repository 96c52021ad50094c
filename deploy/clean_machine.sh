#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs deploy/new_user.sh, a new user's first steps, in a fresh Debian 12. The system contains only the bundle and, for
# each interface (SURFACE), the packages that docs/install.md lists. Requires root, debootstrap and a network.
#
# usage: deploy/clean_machine.sh BUNDLE.tar.gz|PREFIX [SURFACE...]
#   CROUT_MIRROR        Debian mirror, http://deb.debian.org/debian by default
#   CROUT_CERTIFICATES  PEM file of authorities that pip trusts, where a proxy requires it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -ge 1 ] || { sed -n '/^# usage/,/^set/p' "$0" | sed '$d' >&2; exit 2; }
bundle=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- operator croutctl python c fortran cpp
machine=$(mktemp -d)
chmod 755 "$machine"
mounted=()
leave() {
  for place in "${mounted[@]}"; do umount "$machine/$place"; done
  rm -rf --one-file-system "$machine"
}
trap leave EXIT

# Prints the packages of an interface, from the table in docs/install.md.
packages_of() { sed -n "s/^| $1 | .* | \`apt-get install \(.*\)\` |\$/\1/p" docs/install.md; }

debootstrap --variant=minbase bookworm "$machine" "${CROUT_MIRROR:-http://deb.debian.org/debian}" >/dev/null
mount -t proc proc "$machine/proc"
mounted+=(proc)
mount --bind /dev "$machine/dev"
mounted+=(dev)
cp /etc/resolv.conf "$machine/etc/"
mkdir "$machine/opt/crout"
if [ -d "$bundle" ]; then
  cp -a "$bundle/." "$machine/opt/crout"
else
  tar -xzf "$bundle" --strip-components=1 -C "$machine/opt/crout"
fi
cp deploy/new_user.sh "$machine/opt/"
kept=()
if [ -n "${CROUT_CERTIFICATES:-}" ]; then
  cp "$CROUT_CERTIFICATES" "$machine/opt/certificates.pem"
  kept=(PIP_CERT=/opt/certificates.pem)
fi
chroot "$machine" useradd --create-home user
chroot "$machine" apt-get update -qq
for surface in "$@"; do
  read -ra packages <<<"$(packages_of "$surface")"
  began=$SECONDS
  if [ ${#packages[@]} -gt 0 ]; then
    DEBIAN_FRONTEND=noninteractive chroot "$machine" apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null 2>&1
  fi
  printf '%-10s packages       %7d s\n' "$surface" $((SECONDS - began))
  chroot --userspec=user:user "$machine" env -i HOME=/home/user PATH=/usr/bin:/bin "${kept[@]}" \
    /opt/new_user.sh /opt/crout "$surface"
done
