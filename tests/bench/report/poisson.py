# SPDX-License-Identifier: Apache-2.0
"""Tables of the Poisson problem on a cube: published figures and ours."""

import csv

from report import published, results
from report.table import Table, number

FIGURES = {"iterations": "PCG iterations (Fig. 3.23a)", "residual": "Final relative residual of PCG",
           "setup_s": "PC set-up, s (Figs 3.20, 3.22b, 3.24)", "krylov_s": "Krylov stage, s (Fig. 3.23b)"}
EXACT = {"irr_lu": "MAGMA", "getrf": "cuSOLVER", "crout_lu": "cuSOLVER", "cmpp": "cuSOLVER", "pcmpp": "PCM_8"}


def read():
    """Returns the published {(figure, elements along a subdomain's edge, method): value}."""
    with open(published.DIRECTORY / "bddc.csv", newline="", encoding="utf-8") as file:
        return {(row["figure"], int(row["h_over_H"]), row["decomposer"]): float(row["value"])
                for row in csv.DictReader(file)}


def their_name(row):
    if row["factors"] != "icmpp":
        return EXACT[row["factors"]]
    tolerance = row["tolerance"]
    text = f"{tolerance:g}".replace("e-0", "e-")
    return "ICM_32" + (f" {text}" if tolerance else "")


def method(row):
    if row["factors"] != "icmpp":
        return row["factors"]
    return f"icmpp, as published, tolerance {row['tolerance']:g}"


def iterations(some_results):
    """Tabulates iterations of each method by the size of subdomains, published and ours. Our exact factors are by
    getrf.
    """
    theirs = read()
    sizes = sorted({m for figure, m, _ in theirs if figure == FIGURES["iterations"]})
    ours = {}
    for row in (row for result in some_results for row in result["cubes"] if row["factors"] in ("getrf", "icmpp")):
        ours.setdefault((row.get("tolerance", -1.0), method(row), their_name(row)), {})[row["m"]] = row["iterations"]
    rows = []
    for (_, name, their), counts in sorted(ours.items()):
        rows.append([name, f"published as {their}", *(_count(theirs.get((FIGURES["iterations"], m, their))) for m in sizes)])
        rows.append([name, "Crout", *(_count(counts.get(m)) for m in sizes)])
    note = ("Iterations of conjugate gradients to a relative residual of 1e-6. H/h: elements along an edge of each of the 64 subdomains. A tolerance is "
            "absolute. –: not run.")
    return [Table("Iterations by H/h", ["factors by", "", *map(str, sizes)], rows, note)]


def tables(result):
    """Tabulates iterations and times. Each cube and method has a row."""
    theirs = read()
    rows = []
    for row in result["cubes"]:
        name = their_name(row)
        them = {key: theirs.get((figure, row["m"], name)) for key, figure in FIGURES.items()}
        rows.append([row["m"], f"{row['least_n']}–{row['largest_n']}", method(row), row["iterations"],
                     _count(them["iterations"]), number(row["residual"]), number(them["residual"]),
                     number(row["setup_s"]), number(row["krylov_s"]), name, number(them["setup_s"]),
                     number(them["krylov_s"])])
    header = ["H/h", "orders", "factors by", "iterations", "published", "residual", "published", "set-up, s",
              "Krylov, s", "published as", "its set-up, s", "its Krylov, s"]
    note = ("64 subdomains. The residual of the reduced system when conjugate gradients stop, relative to the first one. irr_lu: all local "
            "matrices as one batch. Crout's times are a client's over loopback. The published times, MAGMA's included, are of 32 MPI ranks "
            "on eight A100 40 GB, and include BDDCML's remaining steps. A tolerance is absolute."
            f"{results.caution(result)}")
    return [Table("Poisson's equation on a cube by BDDC", header, rows, note)]


def _count(value):
    return "–" if value is None else int(value)
