# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus that scrapes one daemon, and the queries of a dashboard. Needs only the standard library."""

import contextlib
import json
import pathlib
import random
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request


# Seconds to wait for an event: much more than it takes, even on a busy machine.
TIMEOUT = 120


def wait_until(condition, what):
    """Polls until condition() is true. Returns its value. Raises an error after TIMEOUT."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {TIMEOUT} s: {what}")
        time.sleep(0.2)


def free_port():
    """Returns a free port for a program that cannot report the port that the system chooses.

    The port is outside the ephemeral range. The system could give an ephemeral port to another program before this
    one listens. It could also use it as the source port of a client of this port, which would then connect to
    itself.
    """
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10000, max(first, 20000))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class PrometheusServer:
    """Runs the configuration in deploy/prometheus with another target and with a scrape every second."""

    def __init__(self, binary, config_dir, target, work_dir):
        shutil.copytree(config_dir / "rules", work_dir / "rules")
        config = (config_dir / "prometheus.yml").read_text()
        config = config.replace("croutd:9464", target)
        config = re.sub(r"_interval: \d+s", "_interval: 1s", config)
        (work_dir / "prometheus.yml").write_text(config)
        self._url = f"http://127.0.0.1:{free_port()}"
        self._log = open(work_dir / "prometheus.log", "wb")
        self._process = subprocess.Popen(
            [binary, f"--config.file={work_dir}/prometheus.yml",
             f"--storage.tsdb.path={work_dir}/data", "--storage.tsdb.retention.time=100y",
             f"--web.listen-address={self._url.removeprefix('http://')}"],
            stdout=self._log, stderr=self._log)
        wait_until(self._ready, "Prometheus ready")

    def _ready(self):
        if self._process.poll() is not None:
            raise AssertionError("Prometheus ended at start")
        try:
            return urllib.request.urlopen(self._url + "/-/ready", timeout=TIMEOUT).status == 200
        except (urllib.error.URLError, ConnectionError):
            return False

    def stop(self):
        self._process.terminate()
        self._process.wait(TIMEOUT)
        self._log.close()

    def _get(self, path, **parameters):
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression):
        """Returns the current values of an expression: {labels: value as text}."""
        result = self._get("query", query=expression)["result"]
        return {tuple(sorted(sample["metric"].items())): sample["value"][1] for sample in result}

    def query_range(self, expression, begin, end):
        """Returns the values of an expression for each second: [(labels, times, values)]."""
        result = self._get("query_range", query=expression, start=begin, end=end, step=1)["result"]
        return [(series["metric"], *zip(*((float(t), float(v)) for t, v in series["values"])))
                for series in result]

    def label_values(self, metric, label):
        return self._get(f"label/{label}/values", **{"match[]": metric})


class Dashboard:
    """The panels of a Grafana dashboard. Variables are substituted as Grafana does."""

    def __init__(self, path):
        self.model = json.loads(path.read_text())
        self.panels = [panel for panel in self.model["panels"] if panel["type"] != "row"]

    def variables(self, prometheus):
        """Returns {name of a variable: regular expression for all its values}, escaped for strings in PromQL."""
        values = {}
        for variable in self.model["templating"]["list"]:
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)",
                                         variable["query"]["query"]).groups()
            found = prometheus.label_values(metric, label)
            assert found, f"variable {variable['name']} has no values"
            values[variable["name"]] = "|".join(re.escape(v) for v in found).replace("\\", "\\\\")
        return values

    def queries(self, variables, rate_interval):
        """Returns {(panel title, refId): expression}."""
        substitutions = {"__rate_interval": rate_interval, **variables}
        queries = {}
        for panel in self.panels:
            for target in panel["targets"]:
                expression = re.sub(r"\$(\w+)", lambda m: substitutions[m.group(1)],
                                    target["expr"])
                queries[panel["title"], target["refId"]] = expression
        return queries
