"""Pictures of the studies: the Poisson problem on a cube, and the flow by mean curvature."""

from matplotlib.ticker import MaxNLocator

from report import flow, poisson
from report.style import COLOURS, legend_beside, looks, plain_numbers, plt

UNCHANGED = 1e-17  # Where an error of 0 stands on a logarithmic axis.


def iterations(cubes):
    """Conjugate gradients' over the size of subdomains, by the tolerance of the local factors: published, and ours."""
    theirs = poisson.read()
    rows = [row for row in cubes if row["factors"] == "icmpp"]
    exact = [row for row in cubes if row["factors"] == "getrf"]
    tolerances = sorted({row["tolerance"] for row in rows})
    figure, axes = plt.subplots(figsize=(8.6, 4.4), layout="constrained")
    for tolerance, colour in zip(tolerances, COLOURS):
        mine = [row for row in rows if row["tolerance"] == tolerance]
        name = poisson.their_name(mine[0])
        them = sorted((m, value) for (what, m, method), value in theirs.items()
                      if (what, method) == (poisson.FIGURES["iterations"], name))
        axes.plot(*zip(*them), "-", color=colour, lw=1, alpha=0.7)
        axes.plot([row["m"] for row in mine], [row["iterations"] for row in mine], "o", ms=6, color=colour,
                  label=f"tolerance {tolerance:g}")
    axes.plot([row["m"] for row in exact], [row["iterations"] for row in exact], "x", ms=8, color="black",
              label="getrf")
    axes.plot([], [], "-", color="#777777", lw=1, label="published, each tolerance\nin the colour of ours")
    axes.set(title="Poisson's equation on a cube, 64 subdomains: iterations by the local factors",
             xlabel="elements along a subdomain's edge, H/h", ylabel="iterations", ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_beside(axes)
    return figure


def mean_curvature(result):
    """What the tolerance and the start do to sweeps, and what each way costs for its error of u."""
    flows = result["flows"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained")
    published_ones = [one for one in flows if one["way"] == "icmpp, published"]
    for start, colour, marker in (("cold", COLOURS[0], "o"), ("warm", COLOURS[1], "s")):
        mine = [one for one in published_ones if one["start"] == start]
        left.plot([f"{one['tolerance']:g}" for one in mine], [flow.later(one, "sweeps") for one in mine], marker=marker,
                  color=colour, label=f"{start} start", mfc="none" if start == "cold" else colour)
    left.set(xlabel="absolute tolerance", ylabel="sweeps of a step",
             title="icmpp as published: sweeps", ylim=(0, None))
    left.legend()
    groups = {}
    for one in flows:
        groups.setdefault(flow.name(one), []).append(one)
    for name, (colour, marker) in looks(groups).items():
        points = [(flow.later(one, "ms"), max(one["steps"][-1]["error_of_u"], UNCHANGED)) for one in groups[name]]
        right.plot(*zip(*points), marker if len(points) == 1 else f"{marker}-", lw=0.7, ms=6, color=colour, label=name)
    right.set(xscale="log", yscale="log", xlabel="ms of a step", ylabel=f"error of u at last (at {UNCHANGED:g}: 0)",
              title="Each way: cost and error")
    plain_numbers(right.xaxis)
    legend_beside(right)
    return figure
