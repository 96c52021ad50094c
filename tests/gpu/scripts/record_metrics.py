#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a daemon's metrics of a GPU under load, once a second, for tests/e2e/monitoring/dashboard_picture.py.

The load consists of uploads and factorizations of growing orders with pauses between them, and then solves with the
cached factors. The recording therefore shows the GPU idle, busy and full of factors. Uses only the standard library.

usage: record_metrics.py CROUTD CROUTCTL SECONDS_OF_A_PART >RECORDING.json
"""

import datetime
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request

# The metrics of the GPUs, and those that supply values for the dashboard's variables.
RECORDED = re.compile(r"crout_(gpu_\w+|build_info|queue_depth|requests_total)\b")
PARTS = [["--mode=factor", "--n=2048", "--concurrency=4"], ["--mode=factor", "--n=8192", "--concurrency=2"],
         ["--mode=solve", "--n=8192", "--nrhs=512", "--concurrency=8"]]


class Recorder:
    """Scrapes the metrics once a second in a thread, from entry to exit.

    `times` are seconds since 1970. `series` are {name with labels: values}; None for a scrape before
    the series appeared. The exit raises RuntimeError if a scrape failed or a series ended early.
    """

    def __init__(self, metrics):
        self._url = f"http://{metrics}/metrics"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._error = None
        self.times = []
        self.series = {}

    def _run(self):
        try:
            self._record()
        except OSError as error:
            self._error = error

    def _record(self):
        while not self._over.wait(1 - time.time() % 1):
            text = urllib.request.urlopen(self._url, timeout=30).read().decode()
            for name, value in re.findall(r"^([^#\s]\S*) (\S+)$", text, re.MULTILINE):
                if RECORDED.match(name):
                    values = self.series.setdefault(name, [])
                    # Earlier scrapes may lack this series.
                    values += [None] * (len(self.times) - len(values))
                    values.append(float(value))
            self.times.append(int(time.time()))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, exception, *_):
        self._over.set()
        self._thread.join()
        if exception is not None:
            return  # an earlier error, which may be the cause
        if self._error is not None:
            raise RuntimeError(f"scrape {len(self.times) + 1} of {self._url} failed: {self._error}")
        short = sorted(name for name, values in self.series.items() if len(values) < len(self.times))
        if short:
            raise RuntimeError(f"series that ended before the last of {len(self.times)} scrapes: {', '.join(short)}")


def main(croutd, croutctl, seconds):
    daemon = subprocess.Popen([croutd, "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--devices=cuda",
                               "--state-dir=none", "--drain-grace=0s"], stdout=subprocess.PIPE, text=True)
    try:
        listen, metrics = re.match(r"croutd ready listen=(\S+) metrics=(\S+)", daemon.stdout.readline()).groups()

        def ctl(*arguments):
            return subprocess.run([croutctl, f"--server={listen}", *arguments], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout

        with Recorder(metrics) as recorder:
            time.sleep(seconds / 2)
            for part in PARTS:
                ctl("bench", f"--duration={seconds}s", *part)
                time.sleep(seconds / 2)
        device = json.loads(ctl("devices", "--json"))["devices"][0]["description"]
        version = subprocess.run([croutd, "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    finally:
        daemon.terminate()
        daemon.wait()
    json.dump({"device": device, "version": version, "date": str(datetime.date.today()),
               "load": [" ".join(part) for part in PARTS], "seconds_of_a_part": seconds,
               "times": recorder.times, "series": recorder.series}, sys.stdout, indent=None, separators=(",", ":"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
