"""Results: their head, as the C++ benchmarks write it, and the file that they are written to."""

import datetime
import json
import os
from pathlib import Path

import crout

LOAD = os.getloadavg()[0]  # Before the benchmark adds to it.


def head(benchmark: str, client: crout.Client, device: str = "") -> dict[str, object]:
    """Where, when and of what: `device` is one of the server's, its first unless given."""
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
    """Write it in place of what was there, as a whole: a run that is killed leaves the last of it."""
    part = Path(f"{path}.part")
    part.write_text(json.dumps(result, indent=1) + "\n")
    part.replace(path)
