#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders results of crout-bench as SVG or PNG pictures and one HTML page with everything.

    render.py RESULT.json [RESULT.json...] -o DIRECTORY [--format=svg|png]

For results of other benchmarks, draws only pictures: traces of series, the Poisson problem, mean curvature flow,
levels of sparse matrices, block_lu and Gauss-Jordan elimination.

Needs matplotlib 3.6 or newer and numpy (Debian: python3-matplotlib).
"""

import argparse
import pathlib
import re
import sys

try:
    from report import heat_map, levels, page, pictures, results, studies, style, tables, trace
except ModuleNotFoundError as error:
    if error.name not in ("matplotlib", "numpy"):
        raise
    sys.exit(f"render.py needs {error.name}: apt-get install python3-matplotlib, or pip install matplotlib")

MAX_HEAT_MAPS = 24


def heat_maps(all_results, cases):
    """Yields (name, figure, cases) for iterative cases with a map of sweeps, cold starts first."""
    patterns = {(p["matrix"], p["dtype"]): p for x in all_results for p in x["patterns"]}
    iterative = [c for c in cases if "sweeps" in c.get("iterations", {}) and results.timed(c)]
    iterative.sort(key=lambda c: (c.get("sequence", {}).get("step", 0), c["n"]))
    for case in iterative[:MAX_HEAT_MAPS]:
        pattern = patterns.get((case["matrix"], case["dtype"]))
        step = "_step{step}_{delta:g}".format(**case["sequence"]) if "sequence" in case else ""
        name = f"sections_{case['matrix']}_{case['series']}_{case['dtype']}{step}"
        yield name, heat_map.heat_map(case, pattern), [case]


def groups(all_results):
    """Returns [(heading, [(name, figure, cases)])]. The heat maps are a generator, which draws one at a time."""
    cases = results.cases(all_results)
    dtypes = results.dtypes(cases)

    def each(function, name):
        return [(f"{name}_{d}", function(cases, d), results.single_matrices(cases, d)) for d in dtypes]
    sequences = [c for c in cases if "sequence" in c]
    return [
        ("Times", each(pictures.times, "times") + each(pictures.speed_up, "speed_up") +
         each(pictures.profile, "profile")),
        ("Accuracy", each(pictures.accuracy, "accuracy")),
        ("auto", [("auto", pictures.automatic(all_results), cases)]),
        ("Warm starts", [("warm_starts", pictures.warm_starts(cases), sequences)]),
        ("Sections of iterative factorizations", heat_maps(all_results, cases)),
    ]


def pictures_alone(all_results):
    """Yields (name, figure, results) for pictures that are not on the page."""
    for result in all_results:
        for one in result.get("traces", []):
            yield trace.name(one), trace.picture(one), [result]
        for matrix, rows in levels.by_matrix(result.get("front_levels", [])).items():
            yield levels.name(matrix), levels.picture(matrix, rows), [result]
        if "flows" in result:
            yield "mean_curvature", studies.mean_curvature(result), [result]
    with_cubes = [result for result in all_results if "cubes" in result]
    if with_cubes:
        rows = [row for result in with_cubes for row in result["cubes"]]
        yield "bddc_iterations", studies.iterations(rows), with_cubes
    of_methods = [result for result in all_results if result["benchmark"] == "crout"]
    shown = list(filter(tables.has_dominant, of_methods))
    yield "block_lu", studies.blocked(shown), shown
    shown = list(filter(results.about_direct, of_methods))
    yield "gauss_jordan", studies.gauss_jordan(shown), shown


def save(name, figure, origins, directory, suffix):
    style.sign(figure, dict.fromkeys(origins))
    file = re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("_")
    path = directory / f"{file}.{suffix}"
    style.save(figure, path)
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="directory")
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    all_results = [results.load(path) for path in arguments.results]
    for name, figure, shown in pictures_alone(all_results):
        if figure is None:
            continue
        save(name, figure, [results.origin(result) for result in shown], arguments.output, arguments.format)
    all_results = [x for x in all_results if x["benchmark"] == "crout" and
                   not (results.about_blocks(x) or results.about_direct(x))]
    if not all_results:
        return
    sections = []
    for heading, figures in groups(all_results):
        inline = []
        for name, figure, shown in figures:
            if figure is None:
                continue
            save(name, figure, results.origins(shown), arguments.output, arguments.format)
            inline.append(style.svg(figure))
        if inline:
            sections.append((heading, inline))
    report = arguments.output / "report.html"
    report.write_text(page.page(all_results, sections, tables.all_tables(all_results)))
    print(report)


if __name__ == "__main__":
    main()
