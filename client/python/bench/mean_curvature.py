# SPDX-License-Identifier: Apache-2.0
"""Measures a flow by mean curvature, with a linear system in each step, for several ways to solve the steps.

usage: mean_curvature.py ADDRESS RESULT.json [--grid=50] [--steps=7] [--device=D] [--ways=NAME,NAME...]

The problem is from L. M. Cejka's thesis (CTU in Prague 2023, section 3.3): a surface z = u(x, y) over the
square [-1, 1]^2 with u = 0 on its boundary, discretized by semi-implicit finite differences on GRID x GRID
points. The thesis solves it by the iterative Crout method, which starts from the factor of the previous step.

Each way continues from its own solutions. Its error is the distance of its u from the u of the way "getrf",
which factors in each step. Times are milliseconds of the server for factorization, solution and corrections,
without the transfer of the matrices. --ways: runs getrf and the ways whose names begin with a NAME. The file
is rewritten after each way.
"""

import argparse
import sys
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from result import head, keep

import crout

TOLERANCES = [0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3]
TIME_STEP = 0.1  # in units of the squared grid width
PHASES = ("analyze", "factor", "solve", "refine")


class Flow:
    """u on the grid, and the matrix A of the system A u' = u of the next step."""

    def __init__(self, grid):
        self.grid, self.h, self.begun = grid, 2 / grid, False
        along = (np.arange(grid) + 0.5) * self.h - 1
        square = along[:, None] ** 2 + along**2
        u = np.exp(-5 * square) * np.sin(10 * np.sqrt(square))
        self.inside = np.zeros((grid, grid), bool)
        self.inside[1:-1, 1:-1] = True
        self.u = np.where(self.inside, u, 0).ravel()

    def matrix(self):
        """Return A. Gradients are zero in the first step, as published."""
        u = self.u.reshape(self.grid, self.grid) * (1.0 if self.begun else 0.0)
        forward = [np.diff(u, axis=axis, append=u.take([-1], axis)) / self.h for axis in (0, 1)]
        backward = [np.diff(u, axis=axis, prepend=u.take([0], axis)) / self.h for axis in (0, 1)]
        area = np.sqrt(1 + sum(d**2 for d in forward))
        mean = np.sqrt(1 + sum(d**2 for d in forward + backward) / 2)
        here = TIME_STEP * mean / area
        south, west = (TIME_STEP * mean / np.roll(area, 1, axis) for axis in (0, 1))
        bands = [(here, 1), (here, self.grid), (west, -1), (south, -self.grid)]
        A = sp.eye(self.grid**2, format="csr")
        for weight, away in bands:
            inner = np.where(self.inside, weight, 0).ravel()
            A += sp.diags(inner) - sp.diags(inner) @ sp.eye(self.grid**2, k=away)
        return A.tocsr()

    def advance(self, x):
        self.u, self.begun = x, True


def milliseconds(*timings):
    return 1e3 * sum(one.get(phase, 0.0) for one in timings for phase in PHASES)


def factorizations(client, flow, steps, warm, options):
    """Factor in each step. `warm`: refactor, so that iterative methods start from the old factor."""
    f, sparse = None, options["algorithm"] == "multifrontal"
    for _ in range(steps):
        A = flow.matrix() if sparse else flow.matrix().toarray()
        if f is not None and warm:
            f.refactor(A, **options)
        else:
            if f is not None:
                f.release()
            f = client.lu_factor(A, **options)
        solution = f.solve(flow.u, full_output=True)
        flow.advance(solution.x)
        step = {"ms": milliseconds(f.record.timings, solution.timings), "factorizations": 1, "solves": 1}
        if options["algorithm"] == "icmpp":
            step["sweeps"] = int(f.iterations().sweeps.sum())
        yield {**step, "backward_error": solution.backward_error}
    f.release()


def series(client, flow, steps, sparse, options):
    """Solve all steps as a series with one of its strategies."""
    matrices = (flow.matrix() if sparse else flow.matrix().toarray() for _ in range(steps))
    sides = (flow.u for _ in range(steps))
    for step in client.series(matrices, sides, **options):
        flow.advance(step.x)
        yield {
            "ms": milliseconds(step.timings),
            "factorizations": int(step.strategy == "refactor"),
            "solves": step.old_iterations + step.new_iterations,
            "backward_error": step.backward_error,
        }


def ways(device):
    """Return the names of the ways, and functions that run a flow."""
    for algorithm in ("getrf", "multifrontal"):
        options = {"algorithm": algorithm, "device": device}
        yield {"way": algorithm}, partial(factorizations, warm=algorithm == "multifrontal", options=options)
    for variant, kind in (("published", "absolute_tolerance"), ("fast", "tolerance")):
        for tolerance in TOLERANCES:
            parameters = {"variant": variant, "pivot_rule": "interval", kind: tolerance}
            options = {"algorithm": "icmpp", "device": device, "parameters": parameters}
            for start in ("cold", "warm"):
                record = {"way": f"icmpp, {variant}", "tolerance": tolerance, "start": start}
                yield record, partial(factorizations, warm=start == "warm", options=options)
    for kind in ("dense", "sparse"):
        for strategy in ("refactor", "reuse", "auto"):
            options = {"strategy": strategy, "device": device}
            yield (
                {"way": f"{kind} series, {strategy}"},
                partial(series, sparse=kind == "sparse", options=options),
            )


def run(client, grid, steps, device, wanted):
    reference = None  # u after each step of the first way
    for record, go in ways(device):
        if not record["way"].startswith(("getrf", *wanted)):
            continue
        flow, rows, us = Flow(grid), [], []
        try:
            for row in go(client, flow, steps):
                us.append(flow.u)
                rows.append(row)
        except crout.NotSupported as error:
            print(record, error, file=sys.stderr)
            continue
        reference = reference or us
        for row, u, exact in zip(rows, us, reference, strict=True):
            row["error_of_u"] = float(np.abs(u - exact).max() / np.abs(exact).max())
        print(record, [round(row["ms"], 1) for row in rows], file=sys.stderr)
        yield {**record, "steps": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("result")
    parser.add_argument("--grid", type=int, default=50)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--device", default="")
    parser.add_argument("--ways", default="")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", crout.LinAlgWarning)  # Poor factors are part of the measurement.
    with crout.connect(arguments.address) as client:
        flows = []
        result = {**head("mean_curvature", client, arguments.device), "grid": arguments.grid, "flows": flows}
        for flow in run(client, arguments.grid, arguments.steps, arguments.device, arguments.ways.split(",")):
            flows.append(flow)
            keep(result, arguments.result)


if __name__ == "__main__":
    main()
