#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Health check of the image: exits with 0 if the daemon in this container accepts calls, else with 1. Reads /readyz of
# the port of CROUT_METRICS_LISTEN, which requires no credentials. It does not support --metrics-tls.
exec 3<>"/dev/tcp/127.0.0.1/${CROUT_METRICS_LISTEN##*:}" || exit 1
printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
read -r _ code _ <&3
[ "$code" = 200 ]
