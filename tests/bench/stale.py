#!/usr/bin/env python3
"""Lists the kept results with the commits that have touched since what they are about.

usage: stale.py

A commit need not have changed a figure: the list says what to look at, and what to measure again first.
"""

import pathlib
import subprocess

from performance_doc import HERE, context, kind
from report import results

GPU = "kernels/cuda/"
# What a benchmark is about; "crout" is about a device.
CODE = {
    "gpu_lu": [f"{GPU}crout_lu", f"{GPU}blocked"],
    "gpu_lu_profile": [f"{GPU}crout_lu", f"{GPU}blocked"],
    "gpu_methods": [f"{GPU}crout", f"{GPU}block_lu", f"{GPU}gauss_jordan", f"{GPU}blocked", "kernels/jobs/schur*"],
    "gpu_iterative": [f"{GPU}icm"],
    "gpu_solve": [f"{GPU}solve"],
    "gpu_irr": [f"{GPU}irr_lu"],
    "gpu_irr_blocks": [f"{GPU}irr_lu"],
    "gpu_mixed": [f"{GPU}crout_lu", "kernels/numerics", "kernels/jobs/factorize_mixed*"],
    "gpu_series": ["kernels/jobs/series*", "kernels/numerics", "kernels/costs"],
    "host_series": ["kernels/jobs/series*", "kernels/numerics", "kernels/costs", "kernels/host/getrf"],
    "host_irr": ["kernels/host/irr_lu"],
    "gpu_sparse": [f"{GPU}multifrontal", f"{GPU}irr_lu", "kernels/sparse"],
    "host_sparse": ["kernels/host/multifrontal", "kernels/sparse"],
    "python_sparse": ["kernels/host/klu", "kernels/host/multifrontal", "kernels/sparse", "server/rpc"],
    "host_sparse_series": ["kernels/host/klu", "kernels/jobs/sparse_factorize*", "kernels/jobs/series*"],
    "gather": ["server/rpc/call_gatherer*", "kernels/jobs/gathered*"],
    "service": ["server/rpc", "server/scheduling"],
    "gpu_service": ["server/scheduling", f"{GPU}device"],
    "tls": ["server/rpc", "server/tls"],
    "python": ["client/python/src", "server/rpc"],
    "bddc": ["client/python/examples/bddc.py", "kernels/host/irr_lu", "kernels/host/icm"],
    "mean_curvature": ["kernels/host/icm", "kernels/host/getrf", "kernels/jobs/series*"],
    "matrix_market": ["kernels/io"],
    "gpu": ["tests/gpu"],
}


def paths(result):
    if kind(result) == "crout":
        room = "cuda" if result["device"].startswith("NVIDIA") else "host"
        return [f"kernels/{room}/{method}" for method in ("getrf", "crout", "icm", "block_lu", "gauss_jordan", "solve",
                                                          "crout_lu")]
    return CODE[kind(result)]


def since(result):
    """Subjects of the commits, None where the result's own is not in this repository."""
    command = ["git", "log", "--format=%h %s", f"{context(result)[1]}..HEAD", "--", *paths(result)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parents[1])
    return done.stdout.splitlines() if done.returncode == 0 else None


def main():
    for path in sorted(pathlib.Path(HERE / "results").glob("*.json")):
        found = since(results.load(path))
        print(path.name, "of an unknown commit" if found is None else f"{len(found)} commits since" if found else "up to date")
        for line in (found or [])[:3]:
            print("   ", line)


if __name__ == "__main__":
    main()
