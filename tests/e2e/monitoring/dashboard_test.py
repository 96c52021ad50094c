#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every query of the Grafana dashboard against a real Prometheus that scrapes a real daemon.

Each query must return data after a factorization and a solve, and must change under its load.

usage: dashboard_test.py CROUTD CROUTCTL CROUTD_TEST
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from dashboard_loads import GPU_METRICS, Daemon, Loads, MetricsWithGpu
from prometheus_server import Dashboard, PrometheusServer, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
SKIPPED = 77  # CTest's SKIP_RETURN_CODE

# The load that changes each panel; by refId if the queries of a panel need different loads.
PANEL_LOADS = {
    "Calls": "factor",
    "Call duration": "factor",
    "Concurrent jobs by phase": "factor",
    "Payload": {"A": "factor", "B": "solve"},
    "Upload size": "factor",
    "Factorizations": "factor",
    "Factorization time": "factor",
    "Factors": "factor",
    "Factor bytes": "factor",
    "Solves": "solve",
    "Solve time": "solve",
    "Batch members": "batches",
    "Members per batch": "batches",
    "Singular members": "batches",
    "Requests per dynamic batch": "small",
    "Requests in dynamic batches": "small",
    "Dynamic batch delay": "small",
    "Series steps": "series",
    "Iterations per step": "series",
    "Refactored steps": "series",
    "Factor age (steps)": "series",
    "Backward error": "solve",
    "Hits": "solve",
    "Misses": "unknown_handle",
    "Failed calls": "unknown_handle",
    "Uploads in flight": "slow_upload",
    "Queue depth (calls)": "crowd",
    "Busy streams": "crowd",
    "Refused calls": "crowd",
    "Reserved memory": "crowd",
    "Device memory": "crowd",
    "Evictions": "crowd_out",
    "Promotions": "promote",
    "Promotion time": "promote",
    "Remaining error budget": "failure",
    "Error budget burn rate": "failure",
    "GPU utilization": "gpu",
    "GPU power": "gpu",
    "GPU temperature": "gpu",
    "GPU clocks": "gpu",
    "GPU memory": "gpu",
    "GPU memory errors": "gpu",
    "GPU Xid errors": "gpu",
    "Memory of tenants": "factor",
    "Factors of tenants": "factor",
    "Jobs of tenants": "crowd",
    "Device time of tenants": "factor",
    "Refused calls of tenants": "over_quota",
    "Daemons up": "stop",
    "Healthy devices": "stop",
}
LOADS = ["factor", "solve", "series", "batches", "small", "unknown_handle", "slow_upload", "crowd", "over_quota",
         "crowd_out", "promote", "failure", "gpu", "stop"]  # run in this order
# Metrics that only a daemon with certificates or identities exports. A daemon without --store exports no
# metrics of the store.
OF_SETTINGS = {"crout_file_refused", "crout_tls_certificate_timestamp_seconds"}
# Panels that change without a load, because the driver counts the memory of all processes.
RESTLESS = {"Device memory"}


class Repeater:
    """Repeats a load on a thread until the context ends."""

    def __init__(self, load):
        self._load = load
        self._over = threading.Event()
        self._error = None
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            while not self._over.is_set():
                self._load()
                self._over.wait(0.05)
        except Exception as error:  # __exit__ raises it on the thread of the test
            self._error = error

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        if self._error:
            raise self._error


def units(expression):
    """Returns the names of the units in Grafana that suit a query, derived from the names of its metrics."""
    metrics = re.findall(r"crout_[a-z_0-9]+", expression)
    base = next((unit for suffix, unit in (
        ("_seconds", "s"), ("_bytes", "bytes"), ("_watts", "watt"), ("_celsius", "celsius"),
        ("_hertz", "hertz"), ("_ratio", "percentunit"), ("backward_error", "sci"))
        if re.sub("_(total|sum|bucket)$", "", metrics[0]).endswith(suffix)), "none") if metrics else "none"
    if "histogram_quantile" in expression:
        return {base}
    if expression.startswith("instance:"):
        return {"none"} if " / " in expression else {"percentunit"}
    if " / " in expression:  # a ratio of metrics: seconds per item, or a share
        return {"s"} if base == "s" else {"percentunit", "none"}
    if "rate(" in expression:  # seconds per second are a number of concurrent items
        return {"s": {"short"}, "bytes": {"Bps"}}.get(base, {"reqps", "ops"})
    return {base}


class DashboardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        work_dir = pathlib.Path(tempfile.mkdtemp(prefix="crout-dashboard-"))
        cls.addClassCleanup(shutil.rmtree, work_dir)
        cls.daemon = Daemon(sys.argv[3], sys.argv[2], work_dir)
        cls.addClassCleanup(cls.daemon.stop)
        metrics = MetricsWithGpu(cls.daemon)
        cls.addClassCleanup(metrics.stop)
        cls.prometheus = PrometheusServer("prometheus", ROOT / "deploy/prometheus",
                                          f"127.0.0.1:{metrics.server_port}", work_dir)
        cls.addClassCleanup(cls.prometheus.stop)
        cls.loads = Loads(cls.daemon, metrics, work_dir)
        cls.dashboard = Dashboard(ROOT / "deploy/grafana/dashboards/crout.json")
        # Histograms with labels are not exported before their first use.
        cls.loads.factor()
        cls.loads.solve()
        cls.loads.batches()
        cls.loads.series()
        cls.loads.small()
        cls.families = set(re.findall(r"^# TYPE (crout_\w+)", cls.daemon.scrape(), re.MULTILINE))

    def evaluate(self, queries):
        return {key: self.prometheus.query(expression) for key, expression in queries.items()}

    def settle(self, queries):
        """Waits until the values of the queries have been stable for two seconds. Returns them."""
        state = {"values": self.evaluate(queries), "since": time.monotonic()}

        def still():
            values = self.evaluate(queries)
            if values != state["values"]:
                state.update(values=values, since=time.monotonic())
            return time.monotonic() - state["since"] > 2.2

        wait_until(still, f"{sorted(queries)} at rest")
        return state["values"]

    def expect_change(self, load, queries):
        still = {k: v for k, v in queries.items() if k[0] not in RESTLESS}
        before = {**self.evaluate(queries), **self.settle(still)}
        unmoved = dict(queries)

        def all_moved():
            for key, values in self.evaluate(unmoved).items():
                moved = {v for labels, v in values.items() if before[key].get(labels) != v}
                if moved - {"NaN"}:
                    del unmoved[key]
            return not unmoved

        with self.loads.begin(load) as repeat, Repeater(repeat):
            try:
                wait_until(all_moved, "change")
            except AssertionError:
                self.fail(f"load '{load}' does not move {sorted(unmoved)}")

    def test_names_exist(self):
        """Tests that the dashboard, the rules and the documentation use existing metrics, and that each metric is
        used.
        """
        def names(text):
            found = set(re.findall(r"(?<![:\w])crout_[a-z_]+", text))
            return {re.sub(r"_(bucket|sum|count)$", "", name) for name in found}

        used = set()
        for panel in self.dashboard.panels:
            for target in panel["targets"]:
                used |= names(target["expr"])
        for rules in (ROOT / "deploy/prometheus/rules").glob("*.yml"):
            used |= names(re.sub(r":crout_[a-z_]+:", "", rules.read_text()))
        gpu = names((ROOT / "server/observability/metrics/gpu_metrics.cc").read_text())
        self.assertEqual(gpu, names(GPU_METRICS))
        store = names((ROOT / "server/observability/metrics/store_metrics.cc").read_text())
        known = self.families | OF_SETTINGS | gpu | store
        self.assertEqual(used - known, set())
        monitoring = (ROOT / "docs/operations/monitoring.md").read_text()
        self.assertEqual(known - names(monitoring), set())

    def test_a_panel_has_one_unit(self):
        """Tests that every query of a panel has the unit of the axis."""
        for panel in self.dashboard.panels:
            config = panel["fieldConfig"]
            self.assertEqual(config["overrides"], [], panel["title"])
            for target in panel["targets"]:
                self.assertIn(config["defaults"]["unit"], units(target["expr"]), target["expr"])

    def test_settings_are_documented(self):
        usage = subprocess.run([sys.argv[1], "--help"], capture_output=True, text=True, check=True)
        flags = set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", usage.stdout, re.MULTILINE))
        flags -= {"--help", "--version"}
        configuration = (ROOT / "docs/operations/configuration.md").read_text()
        self.assertEqual(flags - set(re.findall(r"`(--[a-z-]+)", configuration)), set())

    def test_alerts_have_runbooks(self):
        alerts = (ROOT / "deploy/prometheus/rules/alerts.yml").read_text()
        runbooks = ROOT / "docs/operations/runbooks"
        index = (runbooks / "index.md").read_text()
        names = re.findall(r"- alert: (\w+)", alerts)
        self.assertTrue(names)
        for name in names:
            self.assertIn(f"runbook: docs/operations/runbooks/{name}.md\n", alerts)
            self.assertTrue((runbooks / f"{name}.md").read_text().startswith(f"# {name}\n"), name)
            self.assertIn(f"[{name}]({name}.md)", index)
        self.assertEqual({path.stem for path in runbooks.glob("*.md")} - {"index"}, set(names))

    def test_queries(self):
        self.assertEqual({panel["title"] for panel in self.dashboard.panels}, set(PANEL_LOADS))
        wait_until(lambda: self.prometheus.query("count_over_time(up[1m]) > 4"), "five scrapes")
        self.loads.factor()  # the error budget needs a call between two scrapes
        variables = self.dashboard.variables(self.prometheus)
        queries = self.dashboard.queries(variables, rate_interval="4s")
        for key, expression in queries.items():
            wait_until(lambda: self.prometheus.query(expression), f"data of {key}")

        # Waits until all values are stable, so that loads cause all later changes.
        self.settle({k: v for k, v in queries.items() if k[0] not in RESTLESS})

        by_load = {load: {} for load in LOADS}
        for key, expression in queries.items():
            load = PANEL_LOADS[key[0]]
            load = load if isinstance(load, str) else load[key[1]]
            by_load[load][key] = expression
        if not re.search("cuda", variables["device"]):
            # Without a GPU, host memory is the only tier.
            print("no GPU: Promotions returned data, but cannot move")
            del by_load["promote"]
        for load, moved in by_load.items():
            start = time.monotonic()
            self.expect_change(load, moved)
            print(f"{load}: moves {len(moved)} queries, {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    if shutil.which("prometheus") is None:
        print("SKIPPED: no prometheus on PATH")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2)
