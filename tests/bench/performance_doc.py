#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the performance pages from kept results and published figures.

Reads tests/bench/results and tests/bench/published. Writes docs/performance.md, a short page, its subpages in
docs/studies and docs/performance, and the tables in docs/series.md and README.md. All figures on these pages are
generated.

    performance_doc.py            write the pages
    performance_doc.py --check    fail and show the difference if a page is not up to date

Needs only Python's standard library.
"""

import argparse
import dataclasses
import difflib
import pathlib
import re
import sys
import textwrap
import typing

from report import break_even, flow, irregular_targets, poisson, published, results, reuse, service, tables, whole_set
from report.table import Table, count

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs"

GENERATED = """`tests/bench/performance_doc.py` generates this page from the results in `tests/bench/results/`, each with its
device and commit, and from the published figures in `tests/bench/published/`. To change it, add a result and run
the script.
"""

READER = "For readers who compare methods, devices and libraries."

# Benchmarks with results that are lists of records: {benchmark: (heading, page)}.
KEPT = {
    "gpu_lu": ("Dense LU on a GPU beside cuSOLVER's getrf", "dense_lu"),
    "gpu_lu_profile": ("Limits of dense LU on a GPU", "dense_lu"),
    "gpu_out_of_core": ("LU of matrices in host memory on a GPU", "dense_lu"),
    "gpu_methods": ("Direct methods on a GPU", "dense_lu"),
    "gpu_iterative": ("The iterative Crout method on a GPU", "iterative_crout"),
    "gpu_solve": ("Solves with cached factors on a GPU", "dense_lu"),
    "gpu_irr": ("Irregular batches on a GPU", "irregular_batches"),
    "gpu_irr_blocks": ("The building blocks of irregular batches on a GPU", "irregular_batches"),
    "host_irr": ("Irregular batches on the host", "irregular_batches"),
    "host_sparse": ("Sparse LU on the host beside other libraries", "irregular_batches"),
    "gpu_sparse": ("Sparse LU on a GPU", "irregular_batches"),
    "cache_misses": ("Cache misses of blocked LU and of the plain loops", "block_lu"),
    "python_sparse": ("Sparse systems through the service beside SciPy", "irregular_batches"),
    "large_sparse": ("Ten million sparse equations, and 2^31 entries, through the service", "irregular_batches"),
    "host_sparse_series": ("Sequences of sparse matrices on the host beside KLU", "irregular_batches"),
    "dynamic_batch": ("Dynamic batching of small requests", "irregular_batches"),
    "gpu_mixed": ("Solutions with low-precision factors on a GPU", "dense_lu"),
    "gpu_series": ("Time series on a GPU", "series"),
    "host_series": ("Time series on the host", "series"),
    "service": ("The service from outside", "service"),
    "tls": ("What TLS costs", "service"),
    "python": ("The Python client beside the C++ client", "service"),
    "fairness": ("One tenant beside the flood of another", "service"),
    "overload": ("Ten times the load that the server can answer", "service"),
    "store": ("The store of factors", "service"),
    "shared_memory": ("Payloads in shared memory of one host", "service"),
    "soak": ("Many clients and tenants during faults", "service"),
    "gpu_service": ("The parts of the service on a GPU", "service"),
}

# The tables of the short page: (benchmark, table, {column: values of the shown rows}, shown columns).
EXPECT = (
    ("gpu_lu", "square", {"dtype": ["f64", "c64"]}, ("dtype", "rows", "getrf, ms", "crout lu, ms", "crout lu times faster", "crout lu tflops",
                                                     "portable times faster")),
    ("gpu_solve", "cached", {"op": ["none"]}, ("n", "nrhs", "getrs, ms", "crout solve, ms", "times faster", "crout solve error",
                                               "getrs error")),
    ("gpu_mixed", "systems", {"family": ["random"], "factor": ["cusolver", "float64", "auto"]},
     ("n", "factor", "ms", "factor, ms", "solve, ms", "corrections", "accurate")),
    ("gpu_irr", "cases", {"operation": ["getrf"], "sizes": ["uniform"]},
     ("members", "largest", "irr, ms", "cusolver streams, ms", "over cusolver streams", "cublas padded, ms", "over cublas padded")),
    ("gpu_sparse", "beside_cudss", {"cudss": ["default"], "phase": ["analysis", "refactor", "solve"]},
     ("matrix", "n", "phase", "multifrontal, ms", "cudss, ms", "ratio")),
    ("host_sparse", "sparse", {}, ("n", "matrix", "nonzeros", "multifrontal analysis, ms", "multifrontal numeric, ms",
                                   "umfpack analysis, ms", "umfpack numeric, ms", "numeric ratio")),
    ("host_sparse", "beside_libraries", {"phase": ["factor", "refactor", "solve"]},
     ("matrix", "n", "phase", "method", "auto, ms", "klu, ms", "superlu, ms", "umfpack, ms", "ratio")),
    ("gpu_series", "series", {"change": ["1.00e-04"]}, ("n", "family", "strategy", "median, ms", "of getrf", "factorizations", "inaccurate")),
    ("service", "latency", {}, ("n", "bare getrf, µs", "last byte to reply, µs", "extra, µs", "round trip, µs")),
    ("tls", "tls_latency", {}, ("n", "plain median, µs", "tls median, µs", "extra, µs", "plain p99, µs", "tls p99, µs")),
)
# The pictures of the short page, one of each kind.
SHOWN = ("bddc_iterations", "block_lu", "gauss_jordan", "levels_maxwell_5", "mean_curvature", "profile_h100_f64", "sections_bp_1400",
         "series_jumps_0.0001")
RESULTS = "performance/results.md"
FOLDED = 25  # tables with at least this many rows are folded


@dataclasses.dataclass
class Page:
    name: str
    title: str
    what: str  # one line for the short page and for the top of this page
    source: str = ""  # the publication
    folder: str = "performance"
    more: typing.Callable = lambda of_kind: []  # returns sections besides those of KEPT
    pictures: tuple = ()  # patterns of names in docs/images

    @property
    def path(self):
        return f"{self.folder}/{self.name}.md"


def kind(result):
    if "benchmarks" in result:
        return "matrix_market"
    return result.get("benchmark") or result.get("suite")


def context(result):
    """Returns device, commit and date, which a result has at its top or in its "context"."""
    where = result.get("context", result)
    return [where["device"], where["commit"], where["date"][:10]]


def result_list(all_results):
    rows = [[f"`{result['file']}`", kind(result)] + context(result) for result in all_results]
    made = Table("Results", ["file", "benchmark", "device", "commit", "date"], rows, f"{READER}\n\n{GENERATED}")
    return made.markdown(1)


def folded(table):
    """Returns the table as Markdown. Tables with many rows are folded."""
    if len(table.rows) < FOLDED:
        return table.markdown()
    head, *rest = table.markdown().partition("\n| ")
    return f"{head}\n<details><summary>{count(len(table.rows), 'row')}</summary>\n{''.join(rest)}\n</details>\n"


def section(title, made, intro=""):
    parts = [f"## {title}\n"] + ([intro + "\n"] if intro else [])
    return "\n".join(parts + [folded(table) for table in made])


def source(result):
    device, commit, date = context(result)
    cores = f", {count(result['cores'], 'core')}" if "cores" in result else ""
    if "load" in result:
        cores += f", load average {result['load']:.1f} at the start"
    return f"{device}{cores}, commit {commit}, {date} (`{result['file']}`)."


def times_count(result):
    """Returns whether the times of a result count. Times on a busy machine do not count, nor times of the
    published variant of the iterative method, which runs for its sweeps and accuracy.
    """
    return not results.busy(result) and not any("variant" in case.get("parameters", {}) and "iterations" in case
                                                for case in result["cases"])


def run_of(result):
    """Returns the device and, from the file's name, the name of the run, as in "H100, thesis"."""
    words = result["file"].removeprefix("crout_bench_").split("_")[:-1]
    words = [word for word in words if not re.fullmatch(r"[ah]\d+|host|\d+cores?", word)]
    return ", ".join([results.device_label(result), *([" ".join(words)] if words else [])])


def iterative_crout(of_kind):
    some = [result for result in of_kind.get("crout", [])
            if not (results.about_blocks(result) or results.about_direct(result))]
    parts = []
    for result in some:
        if times_count(result):
            continue
        made = published.tolerances(result)  # for results without tolerances: sweeps and factors
        if not made:
            made = published.sweeps(result)
            blocks = [] if results.busy(result) else published.thread_blocks(result)
            # Results with thread blocks have few matrices, and thread blocks do not affect the factors.
            made += blocks or whole_set.tables(result, timed=False)
        made += [table for dtype in published.FILES for table in published.solvers(result, dtype)]
        plain = [case for case in results.cases([result]) if "parameters" not in case]
        made += [table for dtype in results.dtypes(plain) for table in tables.conditions(plain, dtype)]
        made += [table for table in tables.failures([result]) if table.rows]
        parts.append(section(f"Sweeps and accuracy beside the published results: {run_of(result)}", made, source(result)))
    cubes = of_kind.get("bddc", [])
    if cubes:
        parts.append(section("Poisson's equation on a cube", poisson.iterations(cubes), " ".join(map(source, cubes))))
    parts += [section("Poisson's equation on a cube: residuals and times", poisson.tables(result), source(result)) for result in cubes]
    parts += [section("Mean curvature flow", flow.tables(result), source(result))
              for result in of_kind.get("mean_curvature", [])]
    parts.append(section("Published totals", [published.totals("decomposers", "Published: totals of the factorizations"),
                                              published.totals("solvers", "Published: totals of the triangular solves")]))
    for result in filter(times_count, some):
        made = whole_set.tables(result, timed=True)
        made += [table for dtype in published.FILES for table in published.beside(result, dtype) + published.solvers(result, dtype)]
        if made:
            parts.append(section(f"Published results beside Crout: {run_of(result)}", made, source(result)))
    return parts


def lu_methods(of_kind):
    some = [result for result in of_kind.get("crout", [])
            if times_count(result) and not (results.about_blocks(result) or results.about_direct(result))]
    return [section(f"LU methods: {run_of(result)}", tables.all_tables([result]), source(result)) for result in some]


def kept_tables(of_kind, benchmark, key, title):
    """Returns a section for each result that has the table."""
    pairs = [(result, service.table(result, key)) for result in of_kind.get(benchmark, [])]
    return [section(title, [table], source(result)) for result, table in pairs if table is not None]


def gauss_jordan(of_kind):
    parts = kept_tables(of_kind, "gpu_methods", "solve", "On a GPU")
    parts += kept_tables(of_kind, "gpu_stripes", "solve", "The published method by stripes of rows, beside Crout")
    timed = list(filter(times_count, of_kind.get("crout", [])))
    made = tables.direct_by_device(timed)
    if made:
        parts.append(section("The host beside the GPU", made,
                             " ".join(source(result) for result in timed if results.about_direct(result))))
    for result in timed:
        made = tables.direct(results.cases([result]))
        if made:
            parts.append(section(f"One right-hand side, and n right-hand sides: {results.device_label(result)}", made,
                                 source(result)))
    return parts


def newest(some):
    """Returns the newest of several results of one benchmark, or None."""
    return max(some, key=lambda result: result["date"], default=None)


def irregular_batches(of_kind):
    experiments = published.irregular(*(newest(of_kind.get(name, [])) for name in ("gpu_irr_blocks", "gpu_irr")))
    targets = irregular_targets.table(of_kind, newest)
    return [section("Published results", [experiments, published.maxwell(of_kind.get("gpu_sparse", []))]),
            *([section("Targets", [targets])] if targets else [])]


def block_lu(of_kind):
    parts = kept_tables(of_kind, "gpu_methods", "factor", "On a GPU, beside other direct methods")
    timed = list(filter(times_count, of_kind.get("crout", [])))
    made = tables.blocks(timed)
    if made:
        parts.append(section("Block sizes, task priorities and threads", made,
                             " ".join(source(result) for result in timed if results.about_blocks(result))))
    made = [tables.times_by_matrix(cases, dtype) for dtype, cases in tables.by_size(timed)]
    return parts + [section("By matrix size, on each device", made, " ".join(map(source, filter(tables.has_dominant, timed))))]


def service_parts(of_kind):
    parts = [section("Matrix Market", [service.google_benchmark(result)], source(result))
             for result in of_kind.get("matrix_market", [])]
    return parts + [f"## The test suite of the GPU\n\n{source(result)} {service.suite(result)}\n"
                    for result in of_kind.get("gpu", [])]


PAGES = (
    Page("iterative_crout", "Čejka: Crout's method, direct and iterative",
         "The iterative method as published, and the thesis's results for all its methods beside Crout's",
         published.CITATION, "studies", iterative_crout, ("bddc_*", "mean_curvature*", "profile_*", "sections_*")),
    Page("gauss_jordan", "Eyvazov: Gauss-Jordan elimination",
         "Gauss-Jordan elimination beside LU with solves, on a GPU and on the host; the published method by stripes",
         "E. Eyvazov, *Gauss-Jordan Solver of Linear Equation Systems on GPU*, CTU in Prague, 2021: NVIDIA RTX 2080 Ti.",
         "studies", gauss_jordan, ("gauss_jordan*",)),
    Page("irregular_batches", "Abdelfattah et al.: irregular batches and sparse LU",
         "Batches of matrices of different sizes, and sparse matrices by fronts",
         "A. Abdelfattah, P. Ghysels, W. Boukaram, S. Tomov, X. S. Li, J. Dongarra, *Addressing Irregular Patterns of Matrix "
         "Computations on GPUs and Their Impact on Applications Powered by Sparse Direct Solvers*, 2022.", "studies",
         irregular_batches,
         ("levels_*",)),
    Page("block_lu", "Rodrigues and Estêvão: blocked LU",
         "Blocked LU without pivoting beside other methods",
         "M. Rodrigues, S. Estêvão, *LU Factorization*, University of Porto, 2023: Intel Core i7-9750H, NVIDIA GTX 1650 Max-Q.",
         "studies", block_lu, ("block_lu*",)),
    Page("dense_lu", "Dense LU and solves",
         "Crout's LU and solves on a GPU beside the vendor's, and low-precision factors"),
    Page("lu_methods", "LU methods over many matrices",
         "Every LU method over random, real and published matrices: times, accuracy and condition, the choice of `auto`",
         more=lu_methods),
    Page("series", "Time series", "Systems that change from step to step, by strategy", pictures=("series_*",)),
    Page("service", "The service", "The client's view: latency, payloads, TLS, Python, tenants, overload, the store", more=service_parts),
)


# Captions of the pictures in docs/images, by the beginning of their names.
CAPTIONS = {
    "bddc_iterations": "Poisson's equation on a cube: iterations of conjugate gradients for each kind of local factor and tolerance",
    "block_lu": "Blocked LU: time by order, and rate by block size and by threads",
    "gauss_jordan": "Gauss-Jordan elimination beside getrf with getrs, on a GPU and on the host",
    "levels_": "The fronts of a sparse matrix by level, and the time at which each level runs, in batches and one by one",
    "mean_curvature": "Mean curvature flow: sweeps by tolerance, and the cost and error of each approach",
    "profile_": "Performance profile: share of the matrices that a method factors within a multiple of the fastest time",
    "sections_": "The published iterative method: magnitudes of A and of its factors, sweeps of each section, bad elements",
    "series_": "A series step by step: iterations with the old factor, new factors, backward errors",
}


def shown(patterns, up=""):
    """Returns Markdown for the matching pictures of docs/images, sorted by name, below the captions of their kinds."""
    lines = []
    for beginning, caption in CAPTIONS.items():
        found = sorted({path for one in patterns for path in (DOCS / "images").glob(f"{one}.svg") if path.name.startswith(beginning)})
        lines += [f"{caption}.\n"] if found else []
        lines += [f"![{path.stem.replace('_', ' ')}]({up}images/{path.name})\n" for path in found]
    return lines


def page_text(page, of_kind):
    parts = [f"# {page.title}\n\n{READER}\n\n{GENERATED}[performance.md](../performance.md) is the overview.\n\n{page.what}.\n"]
    parts += [f"Source: {page.source}\n"] if page.source else []
    parts += shown(page.pictures, "../")
    parts += page.more(of_kind)
    for name, (title, where) in KEPT.items():
        if where != page.name:
            continue
        for result in of_kind.get(name, []):
            made = service.tables(result)
            if made:  # a result that has only a trace has no table
                parts.append(section(title, made, source(result)))
    return "\n".join(parts)


def some_rows(table, wanted):
    """Returns the table with the rows that match `wanted`, {column: values}."""
    at = {table.header.index(name): values for name, values in wanted.items()}
    rows = [row for row in table.rows if all(row[k] in values for k, values in at.items())]
    return Table(table.title, table.header, rows, table.note)


def some_columns(table, wanted):
    """Returns the table with the `wanted` columns that it has. Older results may lack newer columns."""
    there = [name for name in wanted if name in table.header]
    at = [table.header.index(name) for name in there]
    return Table(table.title, there, [[row[k] for k in at] for row in table.rows], table.note)


def expected(title, page, result, table):
    """Returns a part of the short page, with a heading that links to the full page."""
    begin = f"### [{title}]({page.path})\n\n{source(result)}\n\n**{table.title}**\n"
    return begin + "\n" + "\n".join(table.markdown().split("\n")[2:])


def beside_the_published(of_kind):
    """Returns a part with the totals of the thesis's methods and ours, for the result with the most shared matrices."""
    crout = [result for result in of_kind.get("crout", []) if times_count(result)]
    found = [(result, table) for result in crout for table in whole_set.tables(result, timed=True) if table.title.startswith("Totals")]
    if not found:
        return []
    result, table = max(found, key=lambda pair: sum(int(row[2]) for row in pair[1].rows))
    return [expected("The thesis's methods beside its results", PAGES[0], result, table)]


def short_page(all_results, of_kind):
    parts = [f"# Performance\n\n{READER}\n\n{GENERATED}"
             "[tests/bench/README.md](../tests/bench/README.md) describes how results are measured and what they contain.\n",
             "| page | content |\n|---|---|"]
    parts += [f"| [{page.title}]({page.path}) | {page.what} |" for page in PAGES]
    parts.append(f"| [Results]({RESULTS}) | Every kept result: its device, commit and date |")
    parts.append("\n## Typical results\n\nSome rows of the newest results. The pages above have all rows.\n")
    for benchmark, key, rows, wanted in EXPECT:
        having = [result for result in of_kind.get(benchmark, []) if result.get(key)]
        if not having:
            continue
        result = max(having, key=lambda one: (context(one)[2], -all_results.index(one)))
        title, where = KEPT[benchmark]
        page = next(page for page in PAGES if page.name == where)
        parts.append(expected(title, page, result, some_columns(some_rows(service.table(result, key), rows), wanted)))
    parts += beside_the_published(of_kind)
    parts += ["## Pictures\n\nOne of each kind. The pages have the others.\n"] + shown(SHOWN)
    return "\n".join(parts)


FIGURES = ("<!-- Written by tests/bench/performance_doc.py. -->\n", "<!-- Until here. -->\n")


def with_figures(page, table):
    """Returns a hand-written page with the table and its note between the page's two marks."""
    begin, end = FIGURES
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    rows = "\n".join(dataclasses.replace(table, note="").markdown().split("\n")[2:])
    note = textwrap.fill(table.note, 130) + "\n\n" if table.note else ""
    return before + begin + "\n" + rows + "\n" + note + end + after


def documents(all_results):
    """Returns {path in docs: text}."""
    of_kind = {}
    for result in all_results:
        of_kind.setdefault(kind(result), []).append(result)
    made = {page.path: page_text(page, of_kind) for page in PAGES}
    made["performance.md"] = short_page(all_results, of_kind)
    made[RESULTS] = result_list(all_results)
    made["series.md"] = with_figures(DOCS / "series.md", reuse.table(of_kind))
    made["../README.md"] = with_figures(DOCS.parent / "README.md", break_even.table(of_kind))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    paths = sorted((HERE / "results").glob("*.json"))
    wrong = False
    for name, text in documents([results.load(path) for path in paths]).items():
        document = (DOCS / name).resolve()
        name = document.relative_to(DOCS.parent)
        if not check:
            document.parent.mkdir(exist_ok=True)
            document.write_text(text, encoding="utf-8")
            continue
        current = document.read_text(encoding="utf-8") if document.exists() else ""
        difference = list(difflib.unified_diff(current.splitlines(True), text.splitlines(True),
                                               str(name), "generated", n=1))
        sys.stdout.writelines(difference[:60])
        if difference:
            print(f"\n{name} is not what tests/bench/performance_doc.py writes: run it")
            wrong = True
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
