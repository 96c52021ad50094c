"""The head of a result, as the C++ benchmarks write it."""

import datetime
import os

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
        "cores": os.cpu_count(),
        "load": LOAD,
    }
