#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Scans croutd and its metrics port with sslscan, on loopback with trial certificates. Fails unless they accept exactly
# TLS 1.2 and 1.3, and only cipher suites with forward secrecy and authenticated encryption (ECDHE with AES-GCM or
# ChaCha20-Poly1305) of at least 128 bits.
#
# usage: deploy/tls/scan.sh CROUTD
set -euo pipefail
croutd=$(realpath "${1:?usage: deploy/tls/scan.sh CROUTD}")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'kill "$daemon" 2>/dev/null || true; rm -rf "$work"' EXIT
daemon=
"$here/make-certificates.sh" "$work/tls" localhost 127.0.0.1 >/dev/null
mkfifo "$work/ready"
"$croutd" --listen=127.0.0.1:0 --metrics-listen=127.0.0.1:0 --devices=host --state-dir=none --drain-grace=0s \
  --tls-cert="$work/tls/server.crt" --tls-key="$work/tls/server.key" --metrics-tls=on >"$work/ready" 2>"$work/log" &
daemon=$!
read -r -t 60 line <"$work/ready" || { cat "$work/log" >&2; exit 1; }
address=${line#*listen=}
address=${address%% *}
for scanned in "$address" "${line#*metrics=}"; do
  sslscan --no-colour --xml="$work/scan.xml" "$scanned"
  python3 - "$work/scan.xml" <<'PYTHON'
import re
import sys
import xml.etree.ElementTree as ElementTree

test = ElementTree.parse(sys.argv[1]).find("ssltest")
spoken = {(p.get("type") + " " + p.get("version")) for p in test.findall("protocol") if p.get("enabled") == "1"}
suites = [(c.get("sslversion"), c.get("cipher"), int(c.get("bits"))) for c in test.findall("cipher")]
strong = re.compile(r"(ECDHE-\w+|TLS)[-_](AES\d+-GCM-SHA\d+|AES_\d+_GCM_SHA\d+|CHACHA20[-_]POLY1305(_SHA256)?)")
weak = [suite for suite in suites if not strong.fullmatch(suite[1]) or suite[2] < 128]
if spoken != {"tls 1.2", "tls 1.3"} or not suites or weak:
    sys.exit(f"scan: speaks {sorted(spoken)}; weak suites: {weak}")
print(f"scan: {len(suites)} suites of TLS 1.2 and 1.3, none weak")
PYTHON
done
