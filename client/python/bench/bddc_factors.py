# SPDX-License-Identifier: Apache-2.0
"""Measures BDDC for Poisson's equation on a cube (examples/bddc.py) with several factorization methods.

usage: bddc_factors.py ADDRESS RESULT.json M[,M...] [--device=D] [--methods=A,B...] [--tolerances=T,T...]

The measurements follow L. M. Cejka's thesis (CTU in Prague 2023, sections 2.3 and 3.2). For each M, the
number of elements along a subdomain's edge, the results are the time to set up the preconditioner, the
iterations of conjugate gradients, and their time. --tolerances are the absolute tolerances of icmpp, the
published iterative Crout method; by default those of the thesis. --methods: by default all. Times are
wall-clock seconds of the client, including its own computations. The file is rewritten after each method.
"""

import argparse
import contextlib
import sys
import time
import warnings
from pathlib import Path

from result import head, keep

import crout

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import bddc

METHODS = "irr_lu,getrf,crout_lu,cmpp,pcmpp,icmpp"
TOLERANCES = "0,1e-10,1e-5,0.01,0.1,0.2,0.5,1"


@contextlib.contextmanager
def as_a_batch(client, local, device):
    with client.lu_factor(local, keep_matrix=False, device=device) as f:
        yield lambda sides: f.solve(sides, verify=False)


@contextlib.contextmanager
def one_by_one(client, local, options):
    with contextlib.ExitStack() as stack:
        factors = [client.lu_factor(A, keep_matrix=False, **options) for A in local]
        for f in factors:
            stack.callback(f.release)
        yield lambda sides: [f.solve(b, verify=False) for f, b in zip(factors, sides, strict=True)]


def ways(client, local, device, methods, tolerances):
    """Generate the results with each factorization method of the local matrices."""
    for method in methods:
        options = {"algorithm": method, "device": device}
        if method == "irr_lu":
            yield {"factors": method}, as_a_batch(client, local, device)
        elif method == "icmpp":
            for tolerance in tolerances:
                parameters = {"variant": "published", "absolute_tolerance": tolerance}
                how = one_by_one(client, local, {**options, "parameters": parameters})
                yield {"factors": method, "tolerance": tolerance}, how
        else:
            yield {"factors": method}, one_by_one(client, local, options)


def solve(cube, way):
    """Return the seconds of each stage, and the convergence of conjugate gradients."""
    begin = time.perf_counter()
    with way as solve_all:
        precondition = bddc.Preconditioner(cube, solve_all)
        ready = time.perf_counter()
        _, residuals = bddc.conjugate_gradients(cube.product, precondition, cube.load())
        return {
            "setup_s": ready - begin,
            "krylov_s": time.perf_counter() - ready,
            "iterations": len(residuals),
            "residual": float(residuals[-1]),
        }


def run(client, m, device, methods, tolerances):
    cube = bddc.Cube(m)
    begin = time.perf_counter()
    cube.condense(client, device=device)
    condensed = time.perf_counter() - begin
    local = cube.local_matrices()
    orders = sorted(map(len, local))
    for record, way in ways(client, local, device, methods, tolerances):
        try:
            row = {"m": m, "least_n": orders[0], "largest_n": orders[-1], "condense_s": condensed, **record}
            row.update(solve(cube, way))
        except crout.NotSupported as error:
            print(m, record, error, file=sys.stderr)
            continue
        print(row, file=sys.stderr)
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("result")
    parser.add_argument("m", type=lambda text: [int(one) for one in text.split(",")])
    parser.add_argument("--device", default="")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--tolerances", default=TOLERANCES)
    arguments = parser.parse_args()
    methods = arguments.methods.split(",")
    tolerances = [float(one) for one in arguments.tolerances.split(",")]
    warnings.simplefilter("ignore", crout.LinAlgWarning)  # Poor factors are part of the measurement.
    with crout.connect(arguments.address) as client:
        cubes = []
        result = {**head("bddc", client, arguments.device), "cubes": cubes}
        for m in arguments.m:
            for row in run(client, m, arguments.device, methods, tolerances):
                cubes.append(row)
                keep(result, arguments.result)


if __name__ == "__main__":
    main()
