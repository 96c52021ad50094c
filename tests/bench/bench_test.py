#!/usr/bin/env python3
"""Runs crout-bench from outside and makes every table of what it wrote.

usage: bench_test.py CROUT_BENCH
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from report import published, results, service, tables
from report.table import Table, number, quantile

BENCH = sys.argv.pop(1)
RESULTS = pathlib.Path(__file__).resolve().parent / "results"


def run(*arguments):
    return subprocess.run([BENCH, *arguments], capture_output=True, text=True, check=False)


class BenchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "result.json"
            done = run("--algorithms=getrf,cmpp,icmpp,nothing", "--generate=thesis:33,64",
                       "--generate=dominant:32", "--dtype=f64,f32", "--repetitions=2", "--direct",
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
            figures = [float(cell) for cell in row[3:]]
            self.assertEqual(figures, sorted(figures))

    def test_warm_starts_stand_beside_getrf(self):
        self.assertEqual(set(self.column("Warm starts", "change per step")), {"0.00100", "1.00e-06"})
        self.assertTrue(all(cell.endswith("×") for cell in self.column("Warm starts", "speed-up")))

    def test_what_is_missing_is_listed(self):
        self.assertIn("nothing", self.column("Left out, refused or failed", "method"))

    def test_every_table_has_rows_as_long_as_its_header(self):
        for title, table in self.tables.items():
            for row in table.rows:
                self.assertEqual(len(row), len(table.header), title)
            self.assertIn("<tbody>", table.html())

    def test_a_host_run_is_compared_with_published_cmpp(self):
        result = json.loads(json.dumps(self.result).replace("thesis64", "thesis558"))
        table, = published.beside(result, "f64")
        self.assertIn("Cejka558", [row[0] for row in table.rows])

    def test_bad_arguments_are_refused(self):
        for arguments in (["--generate=thesis"], ["--dtype=f16"], ["--pivoting=never"], []):
            self.assertNotEqual(run(*arguments).returncode, 0, arguments)
        self.assertIn("neither host nor cuda:N", run("--device=tpu", "--generate=random:4").stderr)


class TableTest(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual([number(v) for v in (None, 0.0, 12, 1234.5, 0.012345, 1.5e-9, 3e7, True)],
                         ["–", "0", "12", "1234", "0.0123", "1.50e-09", "3.00e+07", "yes"])

    def test_quantiles(self):
        self.assertEqual([quantile([4, 1, 3, 2], q / 4) for q in range(5)], [1, 1.75, 2.5, 3.25, 4])

    def test_markdown_escapes_bars(self):
        self.assertIn("| max \\|a\\| |", Table("t", ["max |a|"], [[1]]).markdown())

    def test_service_results_become_tables(self):
        table = service.records("t", [{"a_us": 1.0, "n": 5}, {"n": 6, "b": 2}])
        self.assertEqual(table.header, ["n", "a, µs", "b"])
        self.assertEqual(table.rows, [["5", "1.00", "–"], ["6", "–", "2"]])


if __name__ == "__main__":
    unittest.main()
