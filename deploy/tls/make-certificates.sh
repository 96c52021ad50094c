#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes certificates for trials: an authority, the server's certificate for some names, and a client's. In production use
# certificates of your own authority, of cert-manager, SPIRE, or similar.
#
#   deploy/tls/make-certificates.sh DIRECTORY NAME...
#
# NAME: name by which clients call the server, a DNS name or an IP address, such as "localhost 127.0.0.1".
# Writes ca.crt, server.crt, server.key, client.crt and client.key into DIRECTORY, valid for 30 days. The authority's own
# key is written to DIRECTORY-authority/ca.key; no server needs it. An existing authority is reused, so that a second run
# renews the certificates. Each file is replaced by renaming; a running daemon loads the new files.
# The client's certificate has the SPIFFE ID spiffe://crout.test/client.
set -eu

if [ $# -lt 2 ]; then
  sed -n '3,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
directory=${1%/}
authority=$directory-authority
shift
days=30
umask 077
mkdir -p "$directory" "$authority"
ca_key=$(cd "$authority" && pwd)/ca.key
cd "$directory"
new_key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"

names=
for name in "$@"; do
  case $name in
    *[!0-9.]*:* | *:*) names="$names,IP:$name" ;;  # IPv6
    *[!0-9.]*) names="$names,DNS:$name" ;;
    *) names="$names,IP:$name" ;;
  esac
done

if [ ! -e "$ca_key" ]; then
  # shellcheck disable=SC2086
  openssl req -x509 $new_key -days "$days" -subj "/CN=Crout trial authority" \
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$ca_key" -out ca.crt.new
  mv ca.crt.new ca.crt
fi

# issue NAME USAGE ALTERNATIVE_NAMES
issue() {
  # shellcheck disable=SC2086
  openssl req $new_key -subj "/CN=$1" -keyout "$1.key.new" -out "$1.csr"
  printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=%s\nsubjectAltName=%s\n' \
    "$2" "$3" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey "$ca_key" -CAcreateserial -days "$days" \
    -extfile "$1.ext" -out "$1.crt.new"
  mv "$1.key.new" "$1.key"
  mv "$1.crt.new" "$1.crt"
  rm -f "$1.csr" "$1.ext"
}
issue server serverAuth "${names#,}"
issue client clientAuth URI:spiffe://crout.test/client
rm -f ca.srl
chmod 644 ca.crt server.crt client.crt
ls -l
