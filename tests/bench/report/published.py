# SPDX-License-Identifier: Apache-2.0
"""Tables of the published figures in tests/bench/published and of Crout's."""

import csv
import pathlib

from report import results as r
from report.table import Table, milliseconds, number, times

DIRECTORY = pathlib.Path(__file__).resolve().parent.parent / "published"
CITATION = ("L. M. Čejka, *Parallel Computation of LU Decomposition on GPUs for the Numerical Solution "
            "of Partial Differential Equations*, master's thesis, CTU in Prague, 2023 "
            "(`tests/bench/published/`): NVIDIA A100 40 GB, AMD EPYC 7543, CUDA 12.0, means of 10 runs.")
FILES = {"f64": "double", "f32": "single"}
IRREGULAR = "As stated in the paper, on other machines than Crout's, in float64."

# (our method, its device, its published counterparts). The fastest counterpart counts.
PAIRS = (("getrf", "cuda", ["cusolver_getrf"]), ("icmpp", "cuda", ["icm_8pp", "icm_16pp", "icm_32pp"]),
         ("pcmpp", "cuda", ["pcm_8pp", "pcm_16pp", "pcm_32pp"]), ("cmpp", "host", ["cmpp"]),
         ("icmpp", "host", ["icm_8pp", "icm_16pp", "icm_32pp"]))


def read(kind, dtype):
    with open(DIRECTORY / f"{kind}_{FILES[dtype]}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def seconds(row, column):
    """Returns the published time, or None if there is none."""
    text = row.get(f"{column}_s") or ""
    try:
        return float(text)
    except ValueError:
        return None


def columns(rows):
    return [name[:-2] for name in rows[0] if name.endswith("_s")]


def totals(kind, title):
    table_rows = []
    tables = {dtype: read(kind, dtype) for dtype in FILES}
    for column in columns(tables["f64"]):
        row = [column]
        for dtype in FILES:
            values = [seconds(entry, column) for entry in tables[dtype]]
            row += [number(sum(v for v in values if v is not None)),
                    sum(v is not None for v in values)]
        table_rows.append(row)
    return Table(title, ["method", "f64 total s", "matrices", "f32 total s", "matrices"], table_rows)


def _times_of_rows(rows, key, what):
    """Formats the smallest and largest value of the ratio `key`."""
    values = [row[key] for row in rows if key in row]
    return f"{times(min(values))} to {times(max(values))} {what}" if values else ""


def _irregular_block(blocks, experiment):
    """Describes the results of the building blocks for one of the paper's experiments."""
    if experiment.startswith("Triangular"):
        rows = blocks["block_trsm"]
        errors = " and ".join(number(max(row[f"{who}_error"] for row in rows)) for who in ("irr", "cublas_streams"))
        return _times_of_rows(rows, "over_cublas_streams", "the rate of cuBLAS's calls in 16 streams") + f"; largest errors {errors}"
    if experiment.startswith("Panels"):
        return _times_of_rows(blocks["block_panel"], "over_by_columns", "the rate of column by column")
    if experiment.startswith("Interchanges"):
        by_pivots = [_times_of_rows([row for row in blocks["block_laswp"] if row["pivots"] == pivots], "over_row_by_row",
                                    f"as fast as looped with pivots {pivots}") for pivots in ("anywhere", "on the diagonal")]
        return "; ".join(by_pivots)
    return _times_of_rows(blocks["block_gemm"], "over_cublas_streams", "the rate of a loop of cuBLAS in 16 streams")


def _irregular_batch(batches, experiment):
    """Describes the results of whole batches for one of the paper's experiments."""
    if experiment.startswith("Few"):
        return "; ".join(f"up to {row['largest']}: {times(row['over_cusolver_streams'])} as fast as cuSOLVER in 16 streams"
                         for row in batches.get("few_large", []))
    rows = [row for row in batches["cases"] if row["operation"] == "getrf" and row["sizes"] == "uniform"]
    return _times_of_rows(rows, "over_cusolver_streams", "as fast as cuSOLVER in 16 streams")


def irregular(blocks=None, batches=None):
    """Tabulates the experiments of the paper on irregular batches. `blocks` and `batches` are our results for the
    building blocks and for whole batches, or None.
    """
    with open(DIRECTORY / "irregular_batches.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    if blocks is None and batches is None:
        return Table("The paper's experiments", header, rows, IRREGULAR)
    for row in rows:
        of_batches = row[0].startswith(("Factorizations", "Few"))
        result, describe = (batches, _irregular_batch) if of_batches else (blocks, _irregular_block)
        amd = "MI100" in row[1]
        text = "" if result is None or amd else describe(result, row[0])
        row.append(f"{r.device_label(result)}: {text}" if text else "–")
    return Table("The paper's experiments", [*header, "Crout"], rows, f"{IRREGULAR} The tables below have Crout's results.")


def maxwell(all_results):
    """Tabulates numeric factorizations of Maxwell's problem, n = 614,592, from the paper and ours."""
    with open(DIRECTORY / "maxwell.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    for result in all_results:
        for case in result.get("cases", []):
            if case["matrix"] == "maxwell_5":
                rows.append([f"{r.device_label(result)} (`{result['file']}`)", "multifrontal",
                             number(1e-3 * case["numeric_ms"]), number(1e-6 * case["flops"] / case["numeric_ms"])])
    return Table("Maxwell's problem, n = 614,592: the numerical factorization", header, rows,
                 "Published results (table I of the paper), and Crout's if measured. Each rate uses the source's own count of operations.")


# {published matrix: our matrix with the same definition}. One published matrix has two names.
OURS = {"poc-8_4_2-1": "poc-8_4_2_corner", "poc-8_4_2-2": "poc-8_4_2_edge",
        "poc-8_4_2-938719427": "poc-8_4_2_corner", "poc-8_4_2-938719741": "poc-8_4_2_edge",
        "poc-5_4_2-462783752": "bddc_corner5", "poc-25_4_2-462967681": "bddc_corner25", "poc-50_4_2-464363378": "bddc_corner50",
        **{f"poc-{m}_2_2": f"bddc{m}" for m in (20, 24, 28, 32)}}


def our_name(matrix):
    """Returns the name of our matrix with the same definition or description."""
    return OURS.get(matrix, matrix.replace("Cejka", "thesis"))


def by_our_name(kind, dtype):
    """Returns {our name: row} for a file of published figures."""
    return {our_name(row["matrix"]): row for row in read(kind, dtype)}


def _kind(result):
    return "cuda" if result["device"].startswith("NVIDIA") else "host"


def _times_of(result, dtype, algorithm):
    """Returns the case with the fastest parameters for each matrix."""
    best = {}
    for case in r.single_matrices(result["cases"], dtype):
        if case["algorithm"] != algorithm or not r.timed(case):
            continue
        if case["matrix"] not in best or case["median_s"] < best[case["matrix"]]["median_s"]:
            best[case["matrix"]] = case
    return best


def _counterpart(row, names):
    return min((s for s in (seconds(row, name) for name in names) if s is not None), default=None)


def beside(result, dtype):
    """Tabulates the matrices that have a published figure and a figure in the result."""
    rows = []
    for algorithm, kind, names in PAIRS:
        if kind != _kind(result):
            continue
        ours = _times_of(result, dtype, algorithm)
        for row in read("decomposers", dtype):
            theirs, case = _counterpart(row, names), ours.get(our_name(row["matrix"]))
            if case is None or theirs is None:
                continue
            diffs = [row[f"{name}_max_abs_diff"] for name in names]
            rows.append([row["matrix"], case["n"], algorithm, milliseconds(case["median_s"]),
                         milliseconds(theirs), times(theirs / case["median_s"]),
                         number(case.get("max_abs_diff")), number(float(diffs[0]))])
    if not rows:
        return []
    header = ["matrix", "n", "method", f"Crout, {r.device_label(result)}: ms", "published: ms",
              "speed-up", "max |PA - LU|", "published"]
    note = ("The machines differ: the ratio is a user's gain, not a comparison of the code. Both sides use "
            "their fastest parameters. `Cejka<n>` are other matrices of the same description.")
    return [Table(f"{r.device_label(result)}, {dtype}", header, rows, note)]


def read_sections():
    """Returns {our name: (sweeps, bad elements or -1, map by rows of sections)}."""
    with open(DIRECTORY / "sections.csv", newline="", encoding="utf-8") as file:
        return {our_name(row["matrix"]): (int(row["sweeps"]), int(row["bad_elements"] or -1),
                                [[int(cell) for cell in line.split()] for line in row["map"].split(";")])
                for row in csv.DictReader(file)}


def sweeps(result):
    """Tabulates sweeps of the published variant, published and in our runs, and their largest difference."""
    theirs = read_sections()
    rows = []
    for case in r.single_matrices(result["cases"], "f64"):
        i = case.get("iterations", {})
        published_case = theirs.get(case["matrix"])
        parameters = case.get("parameters", {})
        if i.get("variant") != "published" or published_case is None or len(parameters) > 1:
            continue
        total, bad, grid = published_case
        same_shape = len(grid) == i["sections"]  # only maps with few sections are published
        apart = max((abs(a - b) for mine, row in zip(i["sweeps"], grid) for a, b in zip(mine, row)),
                    default=0) if same_shape else None
        rows.append([case["matrix"], case["n"], i["sections"], i["total_sweeps"], total,
                     number(apart), i["total_bad_elements"], "–" if bad < 0 else bad, i["total_pivots"]])
    if not rows:
        return []
    header = ["matrix", "n", "sections a side", "sweeps", "published", "largest difference in a section",
              "bad elements", "published", "rows moved"]
    note = ("`--variant=published`, float64, tolerance 0. `thesis<n>` are other matrices than `Cejka<n>`, of the same "
            "description. Published files that were generated again (`poc`, `bddc`) differ in their last bits, and roundoff "
            "determines where their sweeps end.")
    return [Table("Sweeps of the published method, measured and published", header, rows, note)]


def thread_blocks(result):
    """Tabulates times of the published method by threads per block, with the published times (figure 3.6)."""
    theirs = {dtype: by_our_name("decomposers", dtype) for dtype in FILES}
    rows = []
    for case in (case for dtype in theirs for case in r.single_matrices(result["cases"], dtype)):
        parameters = case.get("parameters", {})
        if parameters.get("variant") != "published" or "block_size" not in parameters or not r.timed(case):
            continue
        row = theirs[case["dtype"]].get(case["matrix"])
        side = parameters["block_size"]
        rows.append([case["matrix"], case["n"], case["dtype"], f"{side} × {side}", case["iterations"]["section_size"],
                     milliseconds(case["median_s"]), milliseconds(row and seconds(row, f"icm_{side}pp"))])
    header = ["matrix", "n", "type", "threads of a block", "section", "ms", "published: ms"]
    note = "`thesis<n>` are other matrices than `Cejka<n>`, of the same description. The machines differ."
    return [Table("Thread blocks of the published method", header, rows, note)] if rows else []


# {tolerance: its column in the published file}.
TOLERANCES = {0.0: "t0", 1e-10: "t1e-10", 1e-5: "t1e-5", 1e-2: "t1e-2", 1e-1: "t1e-1"}


def tolerances(result):
    """Tabulates sweeps and accuracy by the absolute tolerance of the published method, published and ours."""
    theirs = {"f64": by_our_name("tolerances", "f64"), "f32": {}}
    rows = []
    for case in (case for dtype in theirs for case in r.single_matrices(result["cases"], dtype)):
        parameters = case.get("parameters", {})
        if parameters.get("variant") != "published":
            continue
        tolerance = parameters.get("absolute_tolerance", 0.0)
        them = theirs[case["dtype"]].get(case["matrix"], {}).get(f"{TOLERANCES.get(tolerance)}_max_abs_diff")
        rows.append([case["matrix"], case["n"], case["dtype"], number(tolerance),
                     case.get("iterations", {}).get("total_sweeps", "–"), case.get("info", "–"),
                     number(case.get("max_abs_diff")), "–" if them is None else them or "failed",
                     case.get("error", "")[:60]])
    if len({row[3] for row in rows}) < 2:
        return []
    header = ["matrix", "n", "type", "absolute tolerance", "sweeps", "info", "max |PA - LU|", "published", "refused"]
    note = ("info is LAPACK's: above 0, the run ended at a zero pivot. Published in double precision only. "
            "`thesis<n>` stand for `Cejka<n>`: other matrices of the same description.")
    return [Table("Processing tolerances of the published method", header, rows, note)]


# {our solver: its published counterparts}. The fastest counterpart counts.
SOLVERS = {"ss": ["SSPP"], "is": ["IS_8PP", "IS_16PP", "IS_32PP", "IS_64PP", "IS_128PP"],
           "trsm": ["CuBLAStrsmPP"], "getrs": ["CuSolverDnXgetrsPP"]}


def solvers(result, dtype):
    """Tabulates the solvers' errors without the errors of factors, published and ours. A negative published number
    means that there is no result.
    """
    rows = []
    theirs = by_our_name("solvers", dtype)
    for case in result["cases"]:
        row = theirs.get(case["matrix"])
        if "factors" not in case or case["dtype"] != dtype or row is None or case["algorithm"] not in SOLVERS:
            continue
        text = row[f"{SOLVERS[case['algorithm']][0]}_max_abs_diff"]
        diff = case.get("max_abs_diff")
        rows.append([case["matrix"], case["n"], case["algorithm"], case["factors"],
                     "not finite" if diff is None else number(diff), _figure(text)])
    header = ["matrix", "n", "solver", "factors of", "max |LUPX - B|", "published"]
    note = ("Ten right-hand sides of ones, L U taken for the matrix; the published factors of getrs are cuSOLVER's. "
            "`thesis<n>` are other matrices than `Cejka<n>`.")
    return [Table(f"Solvers' own errors, {dtype}", header, rows, note)] if rows else []


def _figure(text):
    try:
        value = float(text)
    except (TypeError, ValueError):
        return "none"
    return number(value) if value >= 0 else "invalid"
