#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests deploy/proxies: large uploads and silent calls through the nginx and the HAProxy of the distribution.

usage: proxies_test.py CROUTD_TEST

Requires the Python client, nginx and HAProxy.
Each proxy runs twice: with its configuration, and with the time-outs of the distribution ("plain"), which must fail.
The silent calls last CROUT_SILENCE seconds, 3 by default. The time-outs of the distribution are scaled by
CROUT_SILENCE / 70, so that they are the true ones with CROUT_SILENCE=70.
"""

import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import sys
import tempfile
import threading
import time
import unittest

import crout
import numpy as np

from proxies import PROGRAMS, TIMEOUT, Proxy, make_certificates  # also finds the modules of the client's tests
from daemon import Daemon  # isort: skip

SILENCE = float(os.environ.get("CROUT_SILENCE", 3))
CROUTD_TEST = None


def scaled(seconds):
    """Returns a time-out of the distribution, scaled as CROUT_SILENCE, in the syntax of both proxies."""
    return f"{round(seconds * SILENCE / 70 * 1000)}ms"


def run_proxy(program, directory, daemon, certificates, plain):
    """Runs a proxy in front of a daemon."""
    def edit(text):
        text = text.replace("127.0.0.1:50051", daemon.address)
        text = text.replace("check port 9464", f"check port {daemon.metrics_address.split(':')[1]}")
        if plain:
            text = re.sub(r"^ .*# tuned\n", "", text, flags=re.M)
            text = re.sub(r"timeout (client|server) 2h", rf"timeout \1 {scaled(50)}", text)
        return text

    file = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}[program]
    names = ("client_body_timeout", "grpc_read_timeout", "grpc_send_timeout")
    return Proxy(program, directory, certificates, file, edit, name=f"{program}{' (plain)' if plain else ''}",
                 defaults="".join(f"{name} {scaled(60)};\n" for name in names))


class ProxiesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        certificates = cls.directory / "tls"
        make_certificates(certificates)
        cls.ca = certificates / "ca.crt"
        # Each held call occupies a stream.
        cls.daemon = Daemon(CROUTD_TEST, cls.directory, "--streams=8", "--batching=off", "--trusted-proxies=127.0.0.1")
        cls.addClassCleanup(cls.daemon.stop)
        cls.proxies = {}
        for program in PROGRAMS:
            for plain in (False, True):
                directory = cls.directory / f"{program}{plain}"
                directory.mkdir()
                cls.proxies[program, plain] = proxy = run_proxy(
                    program, directory, cls.daemon, certificates, plain)
                cls.addClassCleanup(proxy.stop)

    def client(self, proxy):
        return self.enterContext(crout.connect(f"localhost:{proxy.port}", tls=True, ca=self.ca, timeout=TIMEOUT))

    def test_large_uploads_and_replies(self):
        """Tests right-hand sides of 256 MiB, whose solutions have the same size."""
        n, columns = 64, 2**19
        a = np.random.default_rng(1).standard_normal((n, n)) + n * np.eye(n)
        b = np.ones((n, columns), order="F")
        self.assertEqual(b.nbytes, 256 * 2**20)
        for (program, plain), proxy in self.proxies.items():
            if not plain:
                with self.subTest(proxy.name):
                    begin = time.monotonic()
                    x = self.client(proxy).solve(a, b)
                    print(f"{program}: 256 MiB up and 256 MiB down in {time.monotonic() - begin:.1f} s", flush=True)
                    self.assertEqual(x.shape, b.shape)
                    np.testing.assert_allclose(a @ x[:, [0, -1]], 1, atol=1e-12)
        with self.assertRaises(crout.CroutError):
            self.client(self.proxies["nginx", True]).solve(a, b[:, :4096])  # 2 MiB

    def test_silent_calls(self):
        """Tests a job that takes long, and a client that pauses between two steps of a series."""
        a = np.eye(3)
        paused = threading.Barrier(len(self.proxies) + 1, timeout=TIMEOUT)
        resumed = threading.Event()

        def pausing_series(proxy):
            series = self.client(proxy).series(itertools.repeat(a, 2), np.ones(3))
            try:
                next(series)
            finally:
                paused.wait()
            resumed.wait(TIMEOUT)
            return next(series).x

        tuned = [proxy for (_, plain), proxy in self.proxies.items() if not plain]
        untuned = [proxy for (_, plain), proxy in self.proxies.items() if plain]
        with concurrent.futures.ThreadPoolExecutor(2 * len(self.proxies)) as threads:
            series = {proxy: threads.submit(pausing_series, proxy) for proxy in self.proxies.values()}
            paused.wait()
            self.daemon.hold("factorize.factor")
            try:
                jobs = {proxy: threads.submit(self.client(proxy).lu_factor, a) for proxy in tuned}
                self.daemon.await_reached("factorize.factor", len(jobs))
                begin = time.monotonic()
                for proxy in untuned:
                    with self.assertRaises(crout.CroutError, msg=proxy.name):
                        self.client(proxy).lu_factor(a)
                time.sleep(max(0, begin + SILENCE - time.monotonic()))
            finally:
                resumed.set()
                self.daemon.release("factorize.factor")
            for proxy in tuned:
                with self.subTest(proxy.name):
                    jobs[proxy].result(TIMEOUT)
                    np.testing.assert_allclose(series[proxy].result(TIMEOUT), 1)
            for proxy in untuned:
                self.assertIsInstance(series[proxy].exception(TIMEOUT), crout.CroutError, proxy.name)


if __name__ == "__main__":
    CROUTD_TEST = os.path.abspath(sys.argv.pop(1))
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        print(f"skipped: requires {missing}")
        sys.exit(77)
    unittest.main()
