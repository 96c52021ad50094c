#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the texts in pictures of invented results: origins, limits and marks of inaccurate points.

Exits with 77 if matplotlib is missing.

usage: pictures_test.py
"""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
try:
    import render
    from report import results
except SystemExit as missing:
    print(missing)
    sys.exit(77)

ORIGIN = "Some GPU, 4 cores, 2026-01-02, commit abc123"
MARK = "inaccurate"


def case(algorithm, n, ratio, dtype="f64", **more):
    return {"matrix": f"m{n}", "source": "m", "n": n, "nonzeros": n * n, "dtype": dtype, "algorithm": algorithm, "info": 0,
            "factor_ratio": ratio, "max_abs_diff": 1e-12, "backward_error": 1e-16, "median_s": n * 1e-6,
            "min_s": n * 0.9e-6, "max_s": n * 1.1e-6, **more}


ITERATIONS = {"start": "cold", "section_size": 8, "sections": 2, "total_sweeps": 10, "total_pivots": 2, "first_sweeps": 1,
              "sweeps": [[1, 2], [3, 4]], "pivots": [1, 1]}


def result(ratio):
    """Returns a result whose methods, except for the reference, have the factor ratio `ratio`."""
    warm = {"sequence": {"delta": 1e-3, "step": 1}}
    cases = [case("getrf", 16, 0.1), case("getrf", 64, 0.1), case("pcm", 16, ratio), case("pcm", 64, 0.1),
             case("icm", 16, ratio, iterations=ITERATIONS), case("getrf", 16, 0.1, **warm),
             case("icm", 16, ratio, iterations=dict(ITERATIONS, start="warm"), **warm)]
    auto = [{"matrix": "m16", "n": 16, "dtype": "f64", "chosen": "pcm", "chosen_s": 1e-5,
             "best": "pcm", "best_s": 1e-5, "chosen_over_best": 1.0}]
    return {"benchmark": "crout", "device": "Some GPU", "version": "0.1.0", "commit": "abc123",
            "date": "2026-01-02T03:04:05Z", "cores": 4, "repetitions": 1, "cases": cases, "auto": auto,
            "patterns": [], "skipped": [], "unavailable": []}


def traces(error):
    steps = [{"iterations": 0, "factored": True, "backward_error": 1e-16, "ms": 1},
             {"iterations": 3, "factored": False, "backward_error": error, "ms": 1}]
    return {"benchmark": "series", "device": "Some GPU", "version": "0.1.0", "commit": "abc123",
            "date": "2026-01-02T03:04:05Z", "cores": 4, "series": [],
            "traces": [{"family": "random", "change": 0.01, "n": 64, "steps": steps}]}


def cube(m, **how):
    return {"m": m, "least_n": 8, "largest_n": 9, "condense_s": 1, "setup_s": 1, "krylov_s": 1, "iterations": 6,
            "residual": 1e-7, **how}


def flow(**how):
    step = {"ms": 2, "factorizations": 1, "solves": 1, "backward_error": 1e-16, "error_of_u": 1e-9}
    return {**how, "steps": [dict(step, sweeps=9), dict(step, sweeps=7)]}


HEAD = {key: value for key, value in traces(0).items() if key not in ("series", "traces")}
STUDIES = [
    HEAD | {"benchmark": "bddc", "cubes": [cube(5, factors="getrf"), cube(5, factors="icmpp", tolerance=0.5)]},
    HEAD | {"benchmark": "mean_curvature", "grid": 8, "flows": [
        flow(way="getrf"), flow(way="icmpp, published", tolerance=0.0, start="cold"),
        flow(way="icmpp, published", tolerance=0.0, start="warm")]},
]


def methods(device, cores, *cases):
    return result(0.1) | {"device": device, "cores": cores, "cases": list(cases), "auto": []}


BLOCKED = [methods("Some CPU", cores, *(case("block_lu", 64, 0.1, source="dominant", **more) for more in (
    {}, {"parameters": {"block_size": 32}}, {"parameters": {"variant": "published"}}))) for cores in (1, 8)]
DIRECT = [methods(device, 8, case("getrf", 64, 0.1), case("gauss_jordan", 64, 0.1, nrhs=1), case("gauss_jordan", 64, 0.1, nrhs=64))
          for device in ("Some CPU", "NVIDIA H100")]


def level(number, **sizes):
    return {"matrix": "grid", "level": number, "fronts": 2 ** number, "multifrontal_ms": 1, "one_by_one_ms": 5,
            "d1_least": 1, "d1": 3, "d1_most": 9, "d2_least": 0, "d2": 4, "d2_most": 8} | sizes


LEVELS = HEAD | {"benchmark": "gpu_sparse", "cases": [], "front_levels": [
    level(1), level(0, d2=0, d2_most=0), level(0, matrix="other")]}


def draw(*some_results):
    """Returns {name of a picture or of "report.html": text}."""
    with tempfile.TemporaryDirectory() as directory:
        files = [pathlib.Path(directory) / f"result{k}.json" for k in range(len(some_results))]
        for file, some_result in zip(files, some_results):
            file.write_text(json.dumps(some_result))
        with mock.patch("sys.argv", ["render.py", *map(str, files), "-o", directory]), \
                contextlib.redirect_stdout(io.StringIO()):
            render.main()
        return {path.name: path.read_text() for path in pathlib.Path(directory).iterdir()
                if path.suffix in (".svg", ".html")}


class PicturesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.good = draw(result(0.1)) | draw(traces(1e-16))
        cls.bad = draw(result(31)) | draw(traces(1e-13))
        cls.drawn = [name for name in cls.good if name.endswith(".svg")]

    def test_each_kind_of_picture_is_drawn(self):
        self.assertEqual({name.split(".")[0].split("_")[0] for name in self.drawn},
                         {"times", "speed", "profile", "accuracy", "auto", "warm", "sections", "series"})

    def test_each_picture_names_its_device_and_date(self):
        for name in self.drawn:
            self.assertIn(ORIGIN, self.good[name], name)
        self.assertGreaterEqual(self.good["report.html"].count(ORIGIN), 6)

    def test_each_picture_marks_only_inaccurate_points(self):
        for name in self.drawn:
            self.assertNotIn(MARK, self.good[name], name)
            self.assertIn(MARK, self.bad[name], name)

    def test_a_missing_ratio_is_marked(self):
        for name, text in draw(result(None)).items():
            if name.endswith(".svg"):
                self.assertIn(MARK, text, name)

    def test_each_limit_has_a_label(self):
        for name, words in {"speed_up_f64": "as fast as getrf", "accuracy_f64": "accepted: below 30",
                            "auto": "asked: at most 1.1", "warm_starts": "as fast as a new getrf",
                            "series_random_0.01": "asked: √n u"}.items():
            self.assertIn(words, self.good[f"{name}.svg"])

    def test_each_study_has_a_picture(self):
        for study, (name, *words) in zip(STUDIES, (
                ("bddc_iterations.svg", "tolerance 0.5", "getrf", "published, each tolerance"),
                ("mean_curvature.svg", "cold start", "warm start", "error of u at last"))):
            text = draw(study)[name]
            for said in (*words, ORIGIN):
                self.assertIn(said, text, name)

    def test_blocks_threads_and_direct_solvers_have_pictures_without_a_page(self):
        for some, name, words in (
                (BLOCKED, "block_lu.svg", ("block_lu, host (1 core)", "block_lu, host (8 cores)", "1 thread", "8 threads",
                                           "blocks of 32", "blocks of 256, the report's priorities", "n = 64")),
                (DIRECT, "gauss_jordan.svg", ("gauss_jordan, host (8 cores)", "gauss_jordan, H100", "One right-hand side"))):
            drawn = draw(*some)
            self.assertEqual(list(drawn), [name])
            for said in words:
                self.assertIn(said, drawn[name], said)

    def test_each_sparse_matrix_has_a_picture_of_its_levels(self):
        drawn = draw(LEVELS)
        self.assertEqual(set(drawn), {"levels_grid.svg", "levels_other.svg"})
        for said in ("grid: fronts of each level", "d1, eliminated", "d2, border", "in batches", "one by one", ORIGIN):
            self.assertIn(said, drawn["levels_grid.svg"], said)

    def test_magnitudes_are_drawn_with_the_sections(self):
        pattern = {"matrix": "m16", "dtype": "f64", "algorithm": "icm",
                   "a": {"rows": ["a.", ".z"], "low": -1, "high": 2},
                   "lu": {"rows": ["a!", ".z"], "low": -1, "high": 2}}
        text = draw(result(0.1) | {"patterns": [pattern]})["sections_m16_icm_f64.svg"]
        self.assertIn("L + U (icm)", text)
        self.assertIn("not finite", text)
        without = draw(result(0.1) | {"patterns": [dict(pattern, lu=pattern["a"])]})
        self.assertNotIn("not finite", without["sections_m16_icm_f64.svg"])

    def test_a_case_without_a_map_has_no_picture(self):
        without = {key: value for key, value in ITERATIONS.items() if key not in ("sweeps", "pivots")}
        drawn = draw(dict(result(0.1), cases=[case("icm", n, 0.1, iterations=some) for n, some in ((16, ITERATIONS), (64, without))]))
        self.assertEqual([name for name in drawn if name.startswith("sections")], ["sections_m16_icm_f64.svg"])

    def test_types_are_listed_in_a_fixed_order(self):
        cases = [case("getrf", 16, 0.1, dtype=dtype) for dtype in ("c64", "f32", "c128")]
        self.assertEqual(results.dtypes(cases), ["f32", "c128", "c64"])

    def test_the_same_results_give_the_same_bytes(self):
        self.assertEqual(self.good, draw(result(0.1)) | draw(traces(1e-16)))


if __name__ == "__main__":
    unittest.main()
