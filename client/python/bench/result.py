# SPDX-License-Identifier: Apache-2.0
"""Result files: a header as in the C++ benchmarks, and atomic writes."""

import datetime
import json
import os
from pathlib import Path

import crout

LOAD = os.getloadavg()[0]  # before the benchmark adds to it


def head(benchmark: str, client: crout.Client, device: str = "") -> dict[str, object]:
    """Return the header: place, time and commit. `device`: name of a device; by default the first one."""
    info = client.server_info()
    return {
        "benchmark": benchmark,
        "device": next(one for one in info.devices if device in ("", one.name)).description,
        "version": info.version,
        "commit": info.commit,
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        "cores": len(os.sched_getaffinity(0)),
        "load": LOAD,
    }


def keep(result: dict[str, object], path: str) -> None:
    """Replace the file atomically, so that a run that is killed leaves the previous result."""
    part = Path(f"{path}.part")
    part.write_text(json.dumps(result, indent=1) + "\n")
    part.replace(path)
