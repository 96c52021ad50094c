# SPDX-License-Identifier: Apache-2.0
"""Picture of a time series step by step: new factors, iterations, and the accuracy of X."""

import math

from . import style

plt = style.plt


def name(trace):
    return f"series_{trace['family']}_{trace['change']:g}".replace(" ", "_")


def title(trace):
    return f"{trace['family']}, n = {trace['n']}, change {trace['change']:g} a step, auto"


def picture(trace):
    """Draws iterations with the old factor as bars, marks of steps with a new factor, and backward errors."""
    steps = trace["steps"]
    at = range(len(steps))
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 4.4), sharex=True, layout="constrained",
                                          height_ratios=[3, 2])
    reuse, refactor = style.COLOURS[:2]
    above.bar(at, [step["iterations"] for step in steps], color=reuse,
              label="iterations with the old factor")
    made = [i for i in at if steps[i]["factored"]]
    above.plot(made, [0] * len(made), "v", color=refactor, clip_on=False, label="new factor")
    above.set(ylabel="iterations", title=title(trace))
    style.legend_beside(above)
    solved = [i for i in at if steps[i]["backward_error"] > 0]
    for colour, factored in ((reuse, False), (refactor, True)):
        some = [i for i in solved if steps[i]["factored"] == factored]
        below.plot(some, [steps[i]["backward_error"] for i in some], ".", color=colour)
    asked = math.sqrt(trace["n"]) * 2 ** -53
    style.limit(below, asked, "asked: √n u", accepted=True)
    style.ring(below, [(i, steps[i]["backward_error"]) for i in solved
                       if steps[i]["backward_error"] > asked], "inaccurate: above what was asked")
    below.set(yscale="log", xlabel="step", ylabel="backward error")
    style.legend_beside(below)
    return figure
