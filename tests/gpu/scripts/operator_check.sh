#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks how croutd shows a GPU to its operator. Starts croutd, factors with croutctl and checks the
# GPU metrics (NVML), the status page and `croutctl top`: they must show the device and its work, with
# plausible values. Prints the values. Exits with 1 at the first wrong value.
#
# usage: operator_check.sh [BUNDLE]
#
# BUNDLE is an unpacked bundle, by default the one that contains this script. The variables CROUTD and
# CROUTCTL replace the bundle's programs.
set -euo pipefail
bundle=${1:-$(realpath "$(dirname "$0")/../..")}
croutd=${CROUTD:-$bundle/bin/croutd}
croutctl=${CROUTCTL:-$bundle/bin/croutctl}
work=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
mkfifo "$work/ready"
"$croutd" --listen=127.0.0.1:0 --metrics-listen=127.0.0.1:0 --devices=cuda --state-dir=none --drain-grace=0s \
  >"$work/ready" 2>"$work/log" &
daemon=$!
read -r -t 120 line <"$work/ready" || { echo "operator_check: croutd did not start:" >&2; cat "$work/log" >&2; exit 1; }
export CROUT_SERVER=${line#*listen=}
CROUT_SERVER=${CROUT_SERVER%% *}
CROUT_METRICS=${line#*metrics=}

python3 - "$croutctl" "$CROUT_SERVER" "$CROUT_METRICS" "$work" <<'PYTHON'
import json
import math
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

croutctl, server, metrics, work = sys.argv[1:]
TIMEOUT = 60


def scrape():
    """Returns {series: value} from the metrics port."""
    text = urllib.request.urlopen(f"http://{metrics}/metrics", timeout=30).read().decode()
    return {name: float(value) for name, value in re.findall(r"^([^#\s]\S*(?:\{[^}]*\})?) (\S+)$", text, re.MULTILINE)}


def ctl(*arguments):
    return subprocess.run([croutctl, f"--server={server}", *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout


def of_gpu(samples, name):
    """Returns {kind: value} of the first GPU for the family `name`; the kind may be empty."""
    found = {}
    for series, value in samples.items():
        match = re.fullmatch(name + r'\{device="([^"]+)"(?:,kind="(\w+)")?\}', series)
        if match and match.group(1) == device:
            found[match.group(2) or ""] = value
    return found


def check(condition, what):
    if not condition:
        sys.exit(f"operator_check: {what}\n" + pathlib.Path(work, "log").read_text()[-4000:])


device = json.loads(ctl("devices", "--json"))["devices"][0]["name"]
check(device.startswith("cuda:"), f"the first device is {device}, not a GPU")

# Metric families that every data-center GPU reports, with their plausible ranges.
FAMILIES = {
    "crout_gpu_utilization_ratio": (("compute", "memory"), lambda v: 0 <= v <= 1),
    "crout_gpu_memory_bytes": (("total", "used"), lambda v: 1e8 < v < 1e12),
    "crout_gpu_power_watts": (("draw", "limit"), lambda v: 5 < v < 2000),
    "crout_gpu_energy_joules_total": (("",), lambda v: v > 0),
    "crout_gpu_temperature_celsius": (("",), lambda v: 5 < v < 110),
    "crout_gpu_slowdown_temperature_celsius": (("",), lambda v: 50 < v < 130),
    "crout_gpu_clock_hertz": (("sm", "memory"), lambda v: 1e8 < v < 2e10),
    "crout_gpu_ecc_errors_total": (("corrected", "uncorrected"), lambda v: v >= 0),
    "crout_gpu_xid_errors_total": (("",), lambda v: v == 0),
    "crout_gpu_last_xid": (("",), lambda v: v == 0),
    "crout_gpu_reading_age_seconds": (("",), lambda v: 0 <= v < 10),
}
deadline = time.monotonic() + TIMEOUT
while not of_gpu(scrape(), "crout_gpu_reading_age_seconds"):
    check(time.monotonic() < deadline, "no reading of the GPU came")
before = scrape()
for name, (kinds, plausible) in FAMILIES.items():
    values = of_gpu(before, name)
    check(set(values) == set(kinds), f"{name} has {sorted(values)} in place of {sorted(kinds)}")
    for kind, value in values.items():
        print(f"{name}{'{' + kind + '}' if kind else ''} {value:g}")
        check(math.isfinite(value) and plausible(value), f"{name} {kind} is {value:g}")
memory = of_gpu(before, "crout_gpu_memory_bytes")
check(memory["used"] <= memory["total"], "more memory is used than there is")

# Under load, the driver must report the GPU's energy use.
n = 2048
matrix = pathlib.Path(work, "A.txt")
with matrix.open("w") as file:
    for i in range(n):
        file.write(" ".join(str(n if i == j else (i * 7 + j * 13) % 11 - 5) for j in range(n)) + "\n")
for name in ("first", "second"):
    ctl("factor", str(matrix), f"--name={name}")
    error = json.loads(ctl("solve", name, "--ones", "--json"))["backward_error"]
    print(f"factored and solved {name}: backward error {error:g}")
    check(error < 1e-14, f"the backward error is {error:g}")
subprocess.run([croutctl, f"--server={server}", "bench", "--mode=factor", "--n=4096", "--requests=24"], check=True,
               stdout=subprocess.DEVNULL)
deadline = time.monotonic() + TIMEOUT
while of_gpu(scrape(), "crout_gpu_energy_joules_total")[""] <= of_gpu(before, "crout_gpu_energy_joules_total")[""]:
    check(time.monotonic() < deadline, "the GPU worked, and drew no energy")
after = scrape()
print(f"energy {of_gpu(after, 'crout_gpu_energy_joules_total')[''] - of_gpu(before, 'crout_gpu_energy_joules_total')['']:g} J")
print(f"used {of_gpu(after, 'crout_gpu_memory_bytes')['used']:g} bytes of the GPU")
check(sum(value for series, value in after.items() if series.startswith("crout_factor_duration_seconds_count")) >= 26,
      "factorizations are missing in crout_factor_duration_seconds")
check(after[f'crout_device_healthy{{device="{device}"}}'] == 1, "the device is fenced")
page = urllib.request.urlopen(f"http://{metrics}/", timeout=30).read().decode()
check(device in page, "the status page does not show the device")
view = ctl("top", "--once")
print(view)
check(device in view and "default" in view, "croutctl top does not show the device and the tenant")
check("gpu_metrics_unavailable" not in pathlib.Path(work, "log").read_text(), "the log says why there are no metrics of the GPU")
print("operator_check: passed")
PYTHON
