# SPDX-License-Identifier: Apache-2.0
"""A daemon for tests of the dashboard, invented metrics of a GPU, and loads that change the panels."""

import contextlib
import http.server
import json
import os
import re
import socket
import struct
import subprocess
import threading
import urllib.request

from prometheus_server import TIMEOUT, wait_until

# Invented metrics of a GPU, with the names in gpu_metrics.cc.
GPU_METRICS = """
crout_gpu_utilization_ratio{device="host",kind="compute"} 0.5
crout_gpu_utilization_ratio{device="host",kind="memory"} 0.25
crout_gpu_memory_bytes{device="host",kind="total"} 150754820096
crout_gpu_memory_bytes{device="host",kind="used"} 621019136
crout_gpu_power_watts{device="host",kind="draw"} 76.5
crout_gpu_power_watts{device="host",kind="limit"} 700
crout_gpu_energy_joules_total{device="host"} 41000
crout_gpu_temperature_celsius{device="host"} 31
crout_gpu_slowdown_temperature_celsius{device="host"} 87
crout_gpu_clock_hertz{device="host",kind="sm"} 345000000
crout_gpu_clock_hertz{device="host",kind="memory"} 3201000000
crout_gpu_ecc_errors_total{device="host",kind="corrected"} 0
crout_gpu_ecc_errors_total{device="host",kind="uncorrected"} 0
crout_gpu_xid_errors_total{device="host"} 0
crout_gpu_last_xid{device="host"} 0
crout_gpu_reading_age_seconds{device="host"} 0.5
"""


class Daemon:
    """croutd_test on ephemeral ports, with a queue and budgets so small that a test can fill them."""

    def __init__(self, croutd_test, croutctl, work_dir):
        self._croutctl = croutctl
        self._failpoints = str(work_dir / "failpoints")
        self._log = open(work_dir / "croutd.log", "wb")
        quotas = work_dir / "quotas.toml"
        # Also names the tenant for its metrics.
        quotas.write_text("[tenant.default]\nsoft = true\nmax_n = 1400\n")
        quotas.chmod(0o644)
        self._process = subprocess.Popen(
            [croutd_test, f"--failpoints={self._failpoints}", f"--quotas={quotas}", "--listen=127.0.0.1:0",
             "--metrics-listen=127.0.0.1:0", "--streams=1", "--queue-capacity=2",
             "--host-budget=400MiB", "--device-budget=128MiB", "--drain-grace=0s",
             "--upload-idle-timeout=inf", "--upload-min-rate=0"],
            stdout=subprocess.PIPE, stderr=self._log, text=True)
        ready = self._process.stdout.readline()
        self.listen, self.metrics = re.match(
            r"croutd ready listen=(\S+) metrics=(\S+)", ready).groups()

    def stop(self):
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(TIMEOUT)
        self._process.stdout.close()
        self._log.close()

    def ctl(self, *arguments, stdin=None):
        """Runs croutctl. Returns (exit code, standard output)."""
        done = subprocess.run([self._croutctl, f"--server={self.listen}", *arguments],
                              stdin=stdin, capture_output=True, text=True, timeout=TIMEOUT)
        return done.returncode, done.stdout

    def failpoint(self, command):
        """Sends a command of tests/e2e/harness/failpoint_channel.h."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.connect(self._failpoints)
            channel.sendall(command.encode() + b"\n")
            assert channel.makefile().readline() == "ok\n", command

    def scrape(self):
        url = f"http://{self.metrics}/metrics"
        with urllib.request.urlopen(url, timeout=TIMEOUT) as reply:
            return reply.read().decode()

    def factor(self, matrix):
        # Chooses a dense method, because sparse factors are too small to fill the budget.
        code, output = self.ctl("factor", str(matrix), "--algorithm=getrf", "--json")
        return re.search(r'"handle": *"(\w+)"', output).group(1) if code == 0 else None


class MetricsWithGpu(http.server.ThreadingHTTPServer):
    """Serves the metrics of the daemon and the invented metrics of a GPU."""

    def __init__(self, daemon):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(handler):
                try:
                    text = daemon.scrape() + self._gpu()
                except OSError:
                    handler.send_error(502)
                    return
                handler.send_response(200)
                handler.end_headers()
                handler.wfile.write(text.encode())

            def log_message(handler, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.moved = 0
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    def _gpu(self):
        return re.sub(r"} (\S+)$", lambda m: f"}} {float(m[1]) + self.moved}", GPU_METRICS, flags=re.M)

    def stop(self):
        self.shutdown()
        self._thread.join()
        self.server_close()


def write_tridiagonal(path, n):
    """Writes a diagonally dominant matrix of order n as a short text."""
    with open(path, "w") as out:
        out.write(f"%%MatrixMarket matrix coordinate real general\n{n} {n} {3 * n - 2}\n")
        for i in range(1, n + 1):
            out.write(f"{i} {i} 4\n")
            if i > 1:
                out.write(f"{i} {i - 1} -1\n{i - 1} {i} -1.5\n")
    return path


def write_identity(path, n):
    """Writes a dense matrix in NumPy's format."""
    header = f"{{'descr': '<f8', 'fortran_order': True, 'shape': ({n}, {n}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = struct.pack(f"<{n * n}d", *(float(k % (n + 1) == 0) for k in range(n * n)))
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)
    return path


class Loads:
    """The loads. Each is a function that the test repeats until every query has changed, or a context manager that
    yields such a function and holds the daemon in a state while it is observed.
    """

    def __init__(self, daemon, metrics, work_dir):
        self._daemon = daemon
        self._metrics = metrics
        self._small = write_tridiagonal(work_dir / "small.mtx", 300)
        self._medium = write_tridiagonal(work_dir / "medium.mtx", 1400)
        self._large = write_tridiagonal(work_dir / "large.mtx", 1500)  # exceeds the quota
        self._ones = work_dir / "ones.mtx"
        self._ones.write_text("%%MatrixMarket matrix array real general\n2 1\n1\n1\n")
        self._singular = work_dir / "singular.mtx"
        self._singular.write_text("%%MatrixMarket matrix array real general\n1 1\n0\n")
        self._dense = write_identity(work_dir / "dense.npy", 8)
        self._handle = None
        self._handles = []

    def begin(self, name):
        load = getattr(self, name)
        return load() if name in ("slow_upload", "crowd") else contextlib.nullcontext(load)

    def factor(self):
        assert self._daemon.factor(self._small)

    def solve(self):
        self._handle = self._handle or self._daemon.factor(self._small)
        code, _ = self._daemon.ctl("solve", self._handle, "--ones")
        assert code == 0

    def series(self):
        code, _ = self._daemon.ctl("series", str(self._small), str(self._small), "--ones")
        assert code == 0

    def batches(self):
        """Factors and solves a batch of two matrices, of which the second is singular."""
        code, out = self._daemon.ctl("factor-batch", str(self._small), str(self._singular), "--json")
        assert code == 0
        code, _ = self._daemon.ctl("solve-batch", json.loads(out)["handle"], str(self._small))
        assert code == 0

    def small(self):
        """Makes three calls that can form a batch: dense matrices of low order in binary form. The first runs alone;
        the other two wait for its end and run as a batch.
        """
        codes = []
        callers = [threading.Thread(target=lambda: codes.append(self._daemon.ctl("factor", str(self._dense))[0]))
                   for _ in range(3)]
        started = callers[:1]
        self._daemon.failpoint("hold dynamic_batch.run")
        try:
            callers[0].start()
            self._await_gauge("crout_streams_busy", 1)  # before that, the others would join its batch
            for caller in callers[1:]:
                caller.start()
                started.append(caller)
            self._await_gauge("crout_queue_depth", 2)
        finally:
            self._daemon.failpoint("release dynamic_batch.run")
            for caller in started:
                caller.join()
        assert codes == [0, 0, 0], codes

    def unknown_handle(self):
        code, _ = self._daemon.ctl("solve", "a" * 26, str(self._ones))
        assert code == 11

    @contextlib.contextmanager
    def slow_upload(self):
        """Holds an upload open by delaying the rest of its data."""
        banner, rest = self._small.read_bytes().split(b"\n", 1)
        padding = b"% a comment, of which the client sends a first chunk\n" * 60000
        read_end, write_end = os.pipe()
        with os.fdopen(read_end, "rb") as source, os.fdopen(write_end, "wb") as sink:
            caller = threading.Thread(
                target=self._daemon.ctl, args=("factor", "-"), kwargs={"stdin": source})
            caller.start()
            sink.write(banner + b"\n" + padding)
            sink.flush()
            try:
                yield lambda: None
                sink.write(rest)
            finally:
                sink.close()
                caller.join()

    @contextlib.contextmanager
    def crowd(self):
        """Submits more jobs than fit in the queue while the first is held, so that some are refused."""
        self._daemon.failpoint("hold scheduler.job")
        callers = [threading.Thread(target=self._daemon.factor, args=(self._medium,))
                   for _ in range(3)]
        started = callers[:1]
        try:
            callers[0].start()
            self._await_gauge("crout_streams_busy", 1)  # before that, it occupies a place in the queue
            for caller in callers[1:]:
                caller.start()
                started.append(caller)
            self._await_gauge("crout_queue_depth", 2)
            yield lambda: self._daemon.factor(self._small)
        finally:
            self._daemon.failpoint("release scheduler.job")
            for caller in started:
                caller.join()

    def over_quota(self):
        assert self._daemon.factor(self._large) is None

    def _await_gauge(self, name, value):
        wait_until(lambda: re.search(rf"^{name}\S* {value}$", self._daemon.scrape(), re.M),
                   f"{name} {value}")

    def crowd_out(self):
        """Makes another factor. Repeated calls of this function exceed the budget."""
        handle = self._daemon.factor(self._medium)
        assert handle
        self._handles.append(handle)

    def promote(self):
        """Solves in turn with more factors than fit on the device."""
        while len(self._handles) < 6:
            self.crowd_out()
        for handle in self._handles[-6:]:
            code, _ = self._daemon.ctl("solve", handle, "--ones")
            assert code == 0

    def failure(self):
        """Makes a call that fails in the service."""
        self._handle = self._daemon.factor(self._small)
        self._daemon.failpoint("fail solve.run 13 1 broken")
        code, _ = self._daemon.ctl("solve", self._handle, "--ones")
        assert code == 1

    def gpu(self):
        self._metrics.moved += 1

    def stop(self):
        self._daemon.stop()
