# SPDX-License-Identifier: Apache-2.0
"""Tables of mean curvature flow: the cost of each kind of step, and the error of u."""

from report import results
from report.table import Table, number, quantile


def name(flow):
    return flow["way"] + (f", {flow['start']}" if "start" in flow else "")


def later(flow, key):
    """Returns the median over the steps after the first. The first step has no earlier factor."""
    return quantile([step[key] for step in flow["steps"][1:]], 0.5)


def tables(result):
    rows = []
    for flow in result["flows"]:
        steps = flow["steps"]
        sweeps = later(flow, "sweeps") if "sweeps" in steps[0] else None
        rows.append([name(flow), number(flow.get("tolerance")), number(sweeps), sum(s["factorizations"] for s in steps),
                     sum(s["solves"] for s in steps), number(later(flow, "ms")), number(steps[-1]["error_of_u"]),
                     number(max(s["backward_error"] for s in steps))])
    header = ["way", "tolerance", "sweeps of a step", "factorizations", "solves", "ms of a step", "final error of u",
              "worst backward error"]
    count = len(result["flows"][0]["steps"])
    note = (f"{result['grid']} × {result['grid']} grid points, n = {result['grid'] ** 2}, {count} steps. Medians over the "
            "steps after the first: factorization, solution and corrections on the server. The error is the largest "
            "difference from the u of getrf in every step, over the largest |u|. The published variant has absolute "
            "tolerances, the fast one relative tolerances. Series solve to the backward error √n u."
            f"{results.caution(result)}")
    return [Table("Mean curvature flow", header, rows, note)]
