#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests crout-bench as a program, and the tables of its results.

usage: bench_test.py CROUT_BENCH
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SCRIPTS))
import performance_doc  # noqa: E402
from report import (  # noqa: E402
    break_even, flow, irregular_targets, poisson, published, results, reuse, service, tables, whole_set)
from report.table import Table, deviation, mean, number, quantile  # noqa: E402

BENCH = sys.argv.pop(1)
RESULTS = SCRIPTS / "results"


def run(*arguments):
    return subprocess.run([BENCH, *arguments], capture_output=True, text=True, check=False)


class BenchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "result.json"
            done = run("--algorithms=getrf,cmpp,icmpp,nothing", "--generate=thesis:33,64",
                       "--generate=dominant:32", "--dtype=f64,f32", "--repetitions=2", "--direct",
                       "--solvers",
                       "--warm=1e-3,1e-6", "--steps=1", "--tolerance=0,1e-6", "-o", str(file))
            assert done.returncode == 0, done.stderr
            cls.result = results.load(file)
        cls.tables = {table.title: table for table in tables.all_tables([cls.result])}

    def column(self, title, heading):
        table = self.tables[title]
        return [row[table.header.index(heading)] for row in table.rows]

    def test_times_have_a_row_for_each_matrix_by_order(self):
        self.assertEqual(self.column("Time by matrix, f64", "matrix"),
                         ["dominant32", "thesis33", "thesis64"])
        for cell in self.column("Time by matrix, f32", "icmpp (tolerance 1e-06)"):
            self.assertGreater(float(cell.rstrip("*")), 0)

    def test_totals_compare_with_getrf(self):
        self.assertEqual(self.column("Totals, f64", "total over getrf")[0], "1.00×")
        self.assertEqual(self.column("Totals, f64", "matrices"), [3, 3, 3, 3])

    def test_quartiles_are_in_order(self):
        for row in self.tables["Accuracy, f64"].rows:
            figures = [float(cell) for cell in row[3:8]]
            self.assertEqual(figures, sorted(figures))

    def test_warm_starts_are_compared_with_getrf(self):
        self.assertEqual(set(self.column("Warm starts", "change per step")), {"0.00100", "1.00e-06"})
        self.assertTrue(all(cell.endswith("×") for cell in self.column("Warm starts", "speed-up")))

    def test_each_solver_has_a_row_over_all_matrices(self):
        self.assertEqual(self.column("Solvers", "matrices"), [3] * 8)
        self.assertEqual(set(self.column("Solvers", "factors of")), {"cmpp", "getrf"})

    def test_accuracy_is_listed_by_condition(self):
        conditions = [float(cell) for cell in self.column("Condition beside accuracy, f64", "condition")]
        self.assertEqual(conditions, sorted(conditions))
        self.assertGreaterEqual(conditions[0], 1)
        for cell in self.column("Condition beside accuracy, f32", "cmpp"):
            self.assertGreater(float(cell), 0)

    def test_missing_methods_are_listed(self):
        self.assertIn("nothing", self.column("Omitted, refused or failed", "method"))

    def test_every_table_has_rows_as_long_as_its_header(self):
        for title, table in self.tables.items():
            for row in table.rows:
                self.assertEqual(len(row), len(table.header), title)
            self.assertIn("<tbody>", table.html())

    def test_a_host_run_is_compared_with_published_cmpp(self):
        result = json.loads(json.dumps(self.result).replace("thesis64", "thesis558"))
        table, = published.beside(result, "f64")
        self.assertIn("Cejka558", [row[0] for row in table.rows])

    def test_a_killed_run_keeps_its_intermediate_result(self):
        orders = [8, 9, 10]
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "result.json"
            command = [BENCH, "--algorithms=getrf", f"--generate=random:{','.join(map(str, orders))}", "-o", str(file)]
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as bench:
                for line in bench.stderr:
                    if line.startswith("random9 "):  # the result of random8 is now in the file
                        break
                bench.kill()
            result = results.load(file)
        self.assertEqual(result["cases"][0]["matrix"], "random8")
        self.assertEqual([one["matrix"] for one in result["cases"] + result["skipped"]],
                         [f"random{n}" for n in orders])

    def test_bad_arguments_are_refused(self):
        for arguments in (["--generate=thesis"], ["--dtype=f16"], ["--pivoting=never"], []):
            self.assertNotEqual(run(*arguments).returncode, 0, arguments)
        self.assertIn("neither host nor cuda:N", run("--device=tpu", "--generate=random:4").stderr)


class StudyTest(unittest.TestCase):
    """Tests tables of invented results and published results."""

    @staticmethod
    def case(algorithm, difference, seconds, **more):
        return {"matrix": "bcsstk01", "n": 48, "dtype": "f64", "algorithm": algorithm, "info": 0,
                "max_abs_diff": difference, "median_s": seconds, **more}

    def result(self, *cases):
        return {"benchmark": "crout", "device": "Some CPU", "commit": "c", "date": "2026-01-02", "cases": cases}

    def test_our_results_and_published_results_of_the_same_matrices_are_compared(self):
        made = whole_set.tables(self.result(
            self.case("cmpp", 3e-7, 1e-4), self.case("cmpp", 1e-7, 1e-4, matrix="not theirs"),
            self.case("ss", 1e-12, 1e-5, factors="cmpp", nrhs=10)), timed=True)
        titles = [table.title for table in made]
        self.assertEqual(titles, [f"{what} beside the published results, f64"
                                  for what in ("Accuracy", "Totals", "Solvers' accuracy", "Solvers' totals")])
        accuracy, totals = (table.rows for table in made[:2])
        self.assertEqual(accuracy[0], ["cmpp", "Crout", 1, "3.00e-07", "0"] + ["3.00e-07"] * 4)
        self.assertEqual(accuracy[1][:3], ["cmpp", "published cmpp", 1])
        self.assertEqual(totals[0][:4], ["cmpp", "cmpp", 1, "1.00e-04"])
        self.assertEqual([table.title for table in whole_set.tables(self.result(self.case("cmpp", 1, 1)), False)],
                         titles[:1])

    def test_thread_blocks_are_compared_with_published_results(self):
        how = {"parameters": {"variant": "published", "block_size": 16}, "iterations": {"section_size": 48}}
        table, = published.thread_blocks(self.result(self.case("icmpp", 0, 1e-3, **how), self.case("getrf", 0, 1)))
        theirs = published.seconds(published.by_our_name("decomposers", "f64")["bcsstk01"], "icm_16pp")
        self.assertEqual(table.rows, [["bcsstk01", 48, "f64", "16 × 16", 48, "1.00", number(1e3 * theirs)]])
        self.assertEqual(published.thread_blocks(self.result(self.case("icmpp", 0, 1))), [])

    def test_times_count_only_for_timed_results(self):
        how = {"parameters": {"variant": "published"}}
        blocked, swept = self.case("block_lu", 0, 1, **how), self.case("icmpp", 0, 1, iterations={}, **how)
        self.assertTrue(performance_doc.times_count(self.result(blocked)))
        self.assertFalse(performance_doc.times_count(self.result(blocked, swept)))
        self.assertFalse(performance_doc.times_count(dict(self.result(blocked), load=9, cores=8)))

    def test_invalid_published_results_are_not_compared(self):
        ours = self.case("is", 0.1, 1, factors="cmpp", nrhs=10, matrix="orani678")
        made = {table.title: table for table in whole_set.tables(self.result(ours), True)}
        self.assertNotIn("Solvers' accuracy beside the published results, f64", made)

    def test_pivoting_rules_are_compared(self):
        rule = {"parameters": {"pivoting": "interval:1e-05:inf"}}
        *_, table = whole_set.tables(self.result(self.case("cmpp", 1e-7, 1, **rule), self.case("cmpp", 2e-7, 1)), False)
        self.assertEqual(table.rows, [["cmpp", "bcsstk01", 48, "1.00e-07", "1.19e-07", "2.00e-07", "1.19e-07"]])

    def test_the_cube_is_compared_with_published_results(self):
        cube = {"m": 50, "least_n": 1, "largest_n": 2, "setup_s": 1.0, "krylov_s": 2.0, "iterations": 37, "residual": 6e-7}
        table, = poisson.tables({"cubes": [dict(cube, factors="icmpp", tolerance=1.0), dict(cube, factors="getrf"),
                                           dict(cube, factors="icmpp", tolerance=1e-5, m=8)]})
        self.assertEqual([row[4] for row in table.rows], [37, 12, "–"])
        self.assertEqual([row[9] for row in table.rows], ["ICM_32 1", "cuSOLVER", "ICM_32 1e-5"])

    def test_iterations_are_compared_with_published_results_by_size(self):
        def cubes(*rows):
            return {"cubes": [dict(zip(("factors", "m", "iterations", "tolerance"), row)) for row in rows]}

        table, = poisson.iterations([cubes(("getrf", 5, 6), ("irr_lu", 5, 9)), cubes(("getrf", 50, 13), ("icmpp", 50, 36, 1.0))])
        self.assertEqual(table.header[2:], [str(m) for m in range(5, 51, 5)])
        self.assertEqual([row[:2] for row in table.rows],
                         [["getrf", "published as cuSOLVER"], ["getrf", "Crout"],
                          ["icmpp, as published, tolerance 1", "published as ICM_32 1"], ["icmpp, as published, tolerance 1", "Crout"]])
        self.assertEqual(table.rows[0][2:], [5, 7, 8, 9, 10, 10, 11, 11, 11, 12])
        self.assertEqual([table.rows[1][2], table.rows[1][3], table.rows[1][-1], table.rows[3][-1]], [6, "–", 13, 36])

    def test_long_tables_are_collapsed(self):
        short, long = (Table("t", ["a"], [[k] for k in range(rows)], "A note.") for rows in (performance_doc.FOLDED - 1, performance_doc.FOLDED))
        self.assertNotIn("<details>", performance_doc.section("s", [short]))
        text = performance_doc.section("s", [long])
        self.assertIn("### t\n\nA note.\n\n<details><summary>25 rows</summary>\n\n| a |\n", text)
        self.assertIn("| 24 |\n\n</details>\n", text)

    def test_rows_are_selected_by_their_columns(self):
        table = performance_doc.some_rows(Table("t", ["n", "dtype"], [[1, "f64"], [2, "f32"], [3, "c64"]]), {"dtype": ["f64", "c64"]})
        self.assertEqual(table.rows, [[1, "f64"], [3, "c64"]])

    def test_blocks_and_threads_have_rates(self):
        parts = [dict(self.result(self.case("block_lu", 0, 2 / cores, n=1000, parameters={"block_size": 128}),
                                  self.case("lu_loop", 0, 4, n=1000)), cores=cores) for cores in (1, 4)]
        parts.append(dict(self.result(self.case("block_lu", 0, 0.5, n=1000), self.case("block_lu", 0, 1, n=1000, dtype="f32")), cores=4))
        table, = tables.blocks(parts)
        self.assertEqual(table.header[2:], ["1 core", "4 cores", "ms on all cores", "over one core"])
        self.assertEqual(table.rows, [[1000, "block_lu, blocks of 128", "0.333", "1.33", "500", "4.00×"],
                                      [1000, "block_lu, blocks of 256", "–", "1.33", "500", "–"],
                                      [1000, "lu_loop", "0.167", "0.167", "4000", "1.00×"]])
        self.assertEqual(tables.blocks([self.result(self.case("block_lu", 0, 1), self.case("gem", 0, 1))]), [])

    def test_the_host_is_compared_with_the_gpu(self):
        parts = [dict(self.result(self.case("getrf", 0, 1), self.case("gauss_jordan", 0, seconds, nrhs=1)),
                      cores=16, device=device) for device, seconds in (("NVIDIA H100 80GB", 0.5), ("Some CPU", 2))]
        table, = tables.direct_by_device(parts)
        self.assertEqual(table.rows, [["bcsstk01", 48, "f64", "gauss_jordan", 1, "H100", "500", "host (16 cores)", "2000",
                                       "4.00×"]])
        self.assertEqual(tables.direct_by_device(parts[:1]), [])

    def test_methods_are_compared_by_size_on_each_device(self):
        parts = [dict(self.result(*(self.case("block_lu", 0, n / cores, n=n, matrix=f"dominant{n}", source="dominant",
                                              max_s=1, min_s=1) for n in (64, 32)),
                                  self.case("block_lu", 0, 1, source="hb/bcsstk01.mtx")), cores=cores) for cores in (1, 4)]
        (dtype, cases), = tables.by_size(parts)
        table = tables.times_by_matrix(cases, dtype)
        self.assertEqual(table.header[2:-1], ["block_lu, host (1 core)", "block_lu, host (4 cores)"])
        self.assertEqual([row[1:4] for row in table.rows], [[32, "32000", "8000"], [64, "64000", "16000"]])

    def test_times_of_a_busy_machine_are_marked(self):
        for load, said in ((1.5, False), (2.5, True)):
            busy = {"cubes": [], "load": load, "cores": 2}
            self.assertEqual("other work" in poisson.tables(busy)[0].note, said)
        self.assertNotIn("other work", poisson.tables(dict(busy, machine_cores=3))[0].note)

    def test_the_flow_counts_the_steps_after_the_first(self):
        steps = [{"ms": ms, "sweeps": ms, "factorizations": 1, "solves": 2, "backward_error": 1e-16, "error_of_u": 1e-9}
                 for ms in (100, 3, 5)]
        table, = flow.tables({"grid": 8, "flows": [{"way": "icmpp", "tolerance": 0.0, "start": "warm", "steps": steps}]})
        self.assertEqual(table.rows, [["icmpp, warm", "0", "4.00", 3, 6, "4.00", "1.00e-09", "1.00e-16"]])


class TableTest(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual([number(v) for v in (None, 0.0, 12, 1234.5, 0.012345, 1.5e-9, 3e7, True)],
                         ["–", "0", "12", "1234", "0.0123", "1.50e-09", "3.00e+07", "yes"])

    def test_quantiles(self):
        self.assertEqual([quantile([4, 1, 3, 2], q / 4) for q in range(5)], [1, 1.75, 2.5, 3.25, 4])

    def test_mean_and_deviation(self):
        self.assertEqual(mean([1, 2, 6]), 3)
        self.assertEqual(deviation([1, 3]), 1)
        self.assertIsNone(mean([]))

    def test_markdown_escapes_bars(self):
        self.assertIn("| max \\|a\\| |", Table("t", ["max |a|"], [[1]]).markdown())

    def test_service_results_become_tables(self):
        table = service.records("t", [{"a_us": 1.0, "n": 5}, {"n": 6, "b": 2}])
        self.assertEqual(table.header, ["n", "a, µs", "b"])
        self.assertEqual(table.rows, [["5", "1.00", "–"], ["6", "–", "2"]])

    def test_results_of_operation_have_tables(self):
        for key in ("fairness", "overload", "store_starts", "store_writes", "store_promotions", "soak"):
            table, = service.tables({"benchmark": key, key: [{"n": 1, "p99_ms": 2.0, "met": True}]})
            self.assertEqual(table.header, ["n", "p99, ms", "met"])

    def test_reuse_is_compared_with_a_factorization_in_each_step(self):
        def result(day, n, auto, change=1e-3, steps=50, family="random"):
            made = [{"n": n, "family": family, "steps": steps, "strategy": strategy, "of_getrf": share, "factorizations": 5}
                    | ({} if change is None else {"change": change})
                    for strategy, share in (("getrf", 1), ("refactor", 0.5), ("auto", auto))]
            return {"device": "a device", "date": day, "series": made}

        gpu = [result("2026-01-02", 8, 0.25), result("2026-01-01", 8, 0.1), result("2026-01-01", 9, 0.5),
               result("2026-01-01", 7, 0.1, steps=2, change=None), result("2026-01-01", 7, 0.1, family="jumps"),
               result("2026-01-01", 7, 0.05, change=None, family="flow")]
        table = reuse.table({"gpu_series": gpu, "host_series": [result("2026-01-01", 8, 0.1)]})
        self.assertEqual([row[1:] for row in table.rows], [
            [9, "random", "1.00×, 5 of 50", "–"], [8, "random", "2.00×, 5 of 50", "–"],
            [7, "flow", "–", "10.0×, 5 of 50"], [8, "random", "5.00×, 5 of 50", "–"]])

    def test_break_even(self):
        self.assertEqual(break_even.link(125e6, alone=3.0, server=1.0), "with a link of at least 0.50 Gbit/s")
        self.assertEqual(break_even.link(1e6, alone=2.0, server=1.0), "with a link of at least 8.0 Mbit/s")
        self.assertEqual(break_even.link(1e6, alone=1.0, server=1.0), "never")
        self.assertEqual(break_even.from_system(alone=5.0, first=4.0, later=6.0), "from system 1")
        self.assertEqual(break_even.from_system(alone=5.0, first=10.0, later=5.0), "never")
        # 10 + 3 k is less than 5 (k + 1) from k = 3 on.
        self.assertEqual(break_even.from_system(alone=5.0, first=10.0, later=3.0), "from system 4")

    def test_sparse_lu_has_tables_with_and_without_cudss(self):
        case = {"matrix": "maxwell_5", "n": 614592, "numeric_ms": 500.0, "flops": 2e12}
        alone = {"benchmark": "gpu_sparse", "device": "NVIDIA H100", "file": "f", "cudss": "not found", "cases": [case]}
        self.assertEqual(len(service.tables(alone)), 1)
        phase = {"matrix": "maxwell_5", "n": 614592, "phase": "refactor", "multifrontal_ms": 8.0, "cudss_ms": 10.0, "ratio": 0.8}
        cases, beside = service.tables(dict(alone, cudss="cuDSS 1.0.0, with its threading layer", beside_cudss=[phase]))
        self.assertTrue(beside.note.startswith("cuDSS 1.0.0, with its threading layer. "), beside.note)
        self.assertTrue(beside.note.endswith(service.ROUNDS_NOTE), beside.note)
        self.assertEqual(beside.rows, [["614592", "maxwell_5", "refactor", "8.00", "10.0", "0.800"]])
        self.assertIn("Float64", cases.title)
        self.assertEqual(published.maxwell([alone]).rows[-1], ["H100 (`f`)", "multifrontal", "0.500", "4000"])

    def test_blocks_of_irregular_batches_are_compared_with_published_results(self):
        row = {"members": 1000, "largest": 32, "rounds": 7, "irr_ms": 0.5, "irr_error": 1e-17}
        made = service.tables({"block_trsm": [row], "block_gemm": [row]})
        self.assertEqual([table.header[-2:] for table in made], [["irr, ms", "irr error"]] * 2)
        table = published.irregular()
        for cells in table.rows:
            self.assertEqual(len(cells), len(table.header))
        self.assertIn("7.6", table.rows[0][-1])

    def test_each_experiment_of_the_paper_has_our_result(self):
        trsm = [{"over_cublas_streams": ratio, "irr_error": 1e-17, "cublas_streams_error": 2e-17} for ratio in (30.0, 9.0)]
        blocks = {"device": "NVIDIA H100", "block_trsm": trsm, "block_panel": [{"over_by_columns": 2.5}],
                  "block_laswp": [{"pivots": "anywhere", "over_row_by_row": 8.0},
                                  {"pivots": "on the diagonal", "over_row_by_row": 4.0}],
                  "block_gemm": [{"over_cublas_streams": 0.5}]}
        cases = [{"operation": "getrf", "sizes": sizes, "over_cusolver_streams": ratio}
                 for sizes, ratio in (("uniform", 600.0), ("uniform", 10.0), ("equal", 3.0))]
        batches = {"device": "NVIDIA H200", "cases": cases,
                   "few_large": [{"largest": 6144, "over_cusolver_streams": 0.95}]}
        ours = [cells[-1] for cells in published.irregular(blocks, batches).rows]
        self.assertEqual(ours, [
            "H100: 9.00× to 30.0× the rate of cuBLAS's calls in 16 streams; largest errors 1.00e-17 and 2.00e-17",
            "H100: 2.50× to 2.50× the rate of column by column",
            "H100: 8.00× to 8.00× as fast as looped with pivots anywhere; 4.00× to 4.00× as fast as looped with pivots on the diagonal",
            "H100: 0.500× to 0.500× the rate of a loop of cuBLAS in 16 streams",
            "H200: 10.0× to 600× as fast as cuSOLVER in 16 streams", "–",
            "H200: up to 6144: 0.950× as fast as cuSOLVER in 16 streams"])
        # Experiments without our results have a dash.
        self.assertEqual([cells[-1] for cells in published.irregular(None, dict(batches, few_large=[])).rows[:4]], ["–"] * 4)

    def test_targets_of_irregular_batches_are_checked(self):
        def case(operation, nrhs, ratio, **more):
            return {"operation": operation, "sizes": "uniform", "largest": 1024, "nrhs": nrhs, "over_cusolver_streams": ratio, **more}
        gpu = {"file": "g", "cases": [case("getrf", 0, 9.0, over_cublas_padded=0.95), case("getrs", 1, 6.0)],
               "few_large": [{"least": 4096, "largest": 6144, "over_crout_lu_1_stream": 1.2, "over_crout_lu_4_streams": 0.9,
                              "over_crout_lu_4_streams_least": 0.8}]}
        host = {"file": "h", "cores": 2, "cases": [{"operation": "getrf", "largest": 64, "dtype": "f32", "gain": 1.6}]}
        service_result = {"file": "s", "device": "AMD", "cores": 2, "batch": {"of_receive": 1.25}}

        def met(gain):
            of_kind = {"gpu_irr": [gpu], "host_irr": [host], "service": [service_result], "dynamic_batch": [{"file": "c", "batching_gain": [gain]}]}
            return [row[3] for row in irregular_targets.table(of_kind, lambda some: some[0] if some else None).rows]
        row = {"clients": 64, "n": 64, "gain": 3.0, "of_empty_calls": 0.54, "alone_extra_us": -5.0}
        self.assertEqual(met(row), ["no", "yes", "yes", "no", "no", "yes", "yes", "yes"])
        self.assertEqual(met(dict(row, gain=10.5, of_empty_calls=0.3))[5:7], ["yes", "yes"])
        self.assertEqual(met(dict(row, of_empty_calls=0.4, alone_extra_us=30.0))[5:7], ["no", "no"])
        self.assertIsNone(irregular_targets.table({}, lambda some: None))

    def test_dynamic_batching_has_tables_of_ratios_and_costs(self):
        made = service.tables({"batching_gain": [{"n": 64, "gain": 3.0}], "call_costs": [{"call": "nothing", "daemon_cpu_us": 12.0}]})
        self.assertEqual([(table.header, table.rows) for table in made],
                         [(["n", "gain"], [["64", "3.00"]]), (["call", "daemon cpu, µs"], [["nothing", "12.0"]])])
        self.assertEqual([service.ROUNDS_NOTE in table.note for table in made], [True, False])


if __name__ == "__main__":
    unittest.main()
