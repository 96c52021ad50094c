"""Poisson's equation on a cube by BDDC (examples/bddc.py), its local matrices factored by several methods.

usage: bddc_factors.py ADDRESS M[,M...] [DEVICE [TOLERANCES]] > result.json

As L. M. Cejka's thesis has it (CTU in Prague 2023, sections 2.3 and 3.2): of each M, elements along a
subdomain's edge, the time of setting the preconditioner up, the iterations of conjugate gradients, and their
time. TOLERANCES: of the published iterative Crout method, absolute, separated by commas; those of the
thesis unless given. Seconds are the client's, with what it computes itself.
"""

import contextlib
import json
import sys
import time
import warnings
from pathlib import Path

from result import head

import crout

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import bddc

TOLERANCES = "0,1e-10,1e-5,0.01,0.1,0.2,0.5,1"


@contextlib.contextmanager
def as_a_batch(client, local, device):
    with client.lu_factor_batch(local, keep_matrix=False, device=device) as f:
        yield lambda sides: f.solve(sides, verify=False)


@contextlib.contextmanager
def one_by_one(client, local, options):
    with contextlib.ExitStack() as stack:
        factors = [client.lu_factor(A, keep_matrix=False, **options) for A in local]
        for f in factors:
            stack.callback(f.release)
        yield lambda sides: [f.solve(b, verify=False) for f, b in zip(factors, sides, strict=True)]


def ways(client, local, device, tolerances):
    """What the local matrices are factored by, and the solves with them."""
    yield {"factors": "irr_lu"}, as_a_batch(client, local, device)
    for algorithm in ("getrf", "crout_lu", "cmpp", "pcmpp"):
        options = {"algorithm": algorithm, "device": device}
        yield {"factors": algorithm}, one_by_one(client, local, options)
    for tolerance in tolerances:
        parameters = {"variant": "published", "absolute_tolerance": tolerance}
        options = {"algorithm": "icmpp", "device": device, "parameters": parameters}
        yield {"factors": "icmpp", "tolerance": tolerance}, one_by_one(client, local, options)


def solve(cube, way):
    """Seconds of each stage, and how conjugate gradients went."""
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


def run(client, m, device, tolerances):
    cube = bddc.Cube(m)
    begin = time.perf_counter()
    cube.condense(client)
    condensed = time.perf_counter() - begin
    local = [kind.local_matrix() for kind in cube.kinds]
    orders = sorted(map(len, local))
    for record, way in ways(client, local, device, tolerances):
        try:
            row = {"m": m, "least_n": orders[0], "largest_n": orders[-1], "condense_s": condensed, **record}
            row.update(solve(cube, way))
        except crout.NotSupported as error:
            print(m, record, error, file=sys.stderr)
            continue
        print(row, file=sys.stderr)
        yield row


def main(address, orders, device="", tolerances=TOLERANCES):
    warnings.simplefilter("ignore", crout.LinAlgWarning)  # Poor factors are what this is about.
    with crout.connect(address) as client:
        result = head("bddc", client, device)
        result["cubes"] = [
            row
            for m in orders.split(",")
            for row in run(client, int(m), device, [float(one) for one in tolerances.split(",")])
        ]
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
