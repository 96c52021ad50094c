#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests three daemons that share a bucket, behind the nginx and the HAProxy of deploy/proxies.

usage: s3_server.py PYTHON replicas_test.py CROUTD

Requires the Python client, nginx and HAProxy. The rolling restart is under CROUT_CALLS calls for each proxy, 300 by
default.
"""

import concurrent.futures
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import unittest

import crout
import numpy as np
from proxies import PROGRAMS, TIMEOUT, make_certificates  # also finds the modules of the client's tests
from replicas import NAMES, Replicas, folder_changes
from daemon import eventually  # isort: skip

CALLS = int(os.environ.get("CROUT_CALLS", 300))
THREADS = 4
N = 8
PATIENT = crout.RetryPolicy(initial_backoff=0.05, max_backoff=0.5, restart=TIMEOUT)
ONCE = crout.RetryPolicy(max_attempts=1)
CROUTD = None


class ReplicasTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.certificates = self.directory / "tls"
        make_certificates(self.certificates)

    def replicas(self, program):
        directory = self.directory / program
        directory.mkdir()
        replicas = Replicas(CROUTD, program, directory, self.certificates)
        self.addCleanup(replicas.stop)
        return replicas

    def client(self, replicas, retry=PATIENT):
        return self.enterContext(crout.connect(f"localhost:{replicas.proxy.port}", tls=True,
                                               ca=self.certificates / "ca.crt", timeout=TIMEOUT, retry=retry))

    @staticmethod
    def home_of(client, handle):
        """Returns the name and the folder in the metadata of the last reply about the factor."""
        return dict(client._transport.replicas.metadata(handle))["crout-replica"].split(".")

    def factors(self, client, count):
        """Makes durable factors of (k + 1) I in all replicas. Returns the factors by k."""
        factors = {k: client.lu_factor((k + 1) * np.eye(N), durable=True, name=str(k)) for k in range(count)}
        self.assertEqual({self.home_of(client, f.handle)[0] for f in factors.values()}, set(NAMES))
        return factors

    def check(self, factor, k):
        np.testing.assert_allclose(factor.solve(np.ones(N)), 1 / (k + 1))

    def test_a_killed_replica_loses_no_durable_factor(self):
        for program in PROGRAMS:
            with self.subTest(program):
                replicas = self.replicas(program)
                client = self.client(replicas)
                factors = self.factors(client, 12)
                before = {k: self.home_of(client, f.handle) for k, f in factors.items()}
                lost = before[0][0]
                replicas.daemons[lost].kill()
                for k, factor in factors.items():
                    self.check(factor, k)
                    name, folder = self.home_of(client, factor.handle)
                    self.assertEqual(folder, before[k][1])
                    if before[k][0] == lost:
                        self.assertNotEqual(name, lost)
                    else:
                        self.assertEqual(name, before[k][0])
                replicas.daemons[lost].start()
                for k, factor in factors.items():
                    self.check(factor, k)

    def test_a_replica_names_the_home_of_the_factor_of_another(self):
        replicas = self.replicas("haproxy")
        client = self.client(replicas)
        factor = client.lu_factor(np.eye(N))
        home, folder = self.home_of(client, factor.handle)
        asked = NAMES[NAMES.index(home) - 1]
        with crout.connect(replicas.daemons[asked].address, timeout=TIMEOUT, retry=ONCE) as direct:
            # The lease of a folder is read some time after its creation.
            def names_home():
                direct._transport.replicas.learn(factor.handle, [("crout-replica", f"{asked}.{folder}")])
                with self.assertRaises(crout.Unavailable) as caught:
                    direct.describe(factor.handle)
                self.assertEqual(caught.exception.reason, "OTHER_REPLICA")
                return self.home_of(direct, factor.handle) == [home, folder]

            self.assertTrue(eventually(names_home))
            with self.assertRaises(crout.InvalidRequest):
                direct._transport.replicas.learn(factor.handle, [("crout-replica", "no folder")])
                direct.describe(factor.handle)

    def test_a_rolling_restart_loses_no_call(self):
        for program in PROGRAMS:
            with self.subTest(program):
                replicas = self.replicas(program)
                factors = self.factors(self.client(replicas), 12)
                load = Load(self, [self.attach(self.client(replicas), factors) for _ in range(THREADS)])
                with load:
                    for i, daemon in enumerate(replicas.daemons.values(), 1):
                        load.await_calls(i * CALLS // 4)
                        self.restart(daemon, [other for other in replicas.daemons.values() if other is not daemon])
                    load.await_calls(CALLS)
                print(f"{program}: {load.calls} calls over a rolling restart", flush=True)

    def restart(self, daemon, others):
        """Restarts a daemon, after another one has adopted its folder."""
        adopted = folder_changes(others, "adopted")
        daemon.end()
        self.assertTrue(eventually(lambda: folder_changes(others, "adopted") > adopted))
        daemon.start()

    def attach(self, client, factors):
        """Returns the factors of another client, whose home the client has learned."""
        for factor in factors.values():
            home = ".".join(self.home_of(factor._client, factor.handle))
            client._transport.replicas.learn(factor.handle, [("crout-replica", home)])
        return [client.factor(factor.handle) for factor in factors.values()]


class Load:
    """Solves with factors on one thread for each list of factors, within the context. Its end raises errors."""

    def __init__(self, test, lists):
        self.calls = 0
        self._test = test
        self._lists = lists
        self._changed = threading.Condition()
        self._failed = False
        self._stopping = False
        self._threads = concurrent.futures.ThreadPoolExecutor(len(lists))

    def __enter__(self):
        self._running = [self._threads.submit(self._solve, factors) for factors in self._lists]
        return self

    def __exit__(self, *error):
        self._stopping = True
        self._threads.shutdown()
        for solving in self._running:
            solving.result()

    def await_calls(self, count):
        """Waits until this number of calls have succeeded, or until one has failed."""
        with self._changed:
            self._test.assertTrue(self._changed.wait_for(lambda: self.calls >= count or self._failed, TIMEOUT))

    def _solve(self, factors):
        try:
            while not (self._stopping or self._failed):
                for k, factor in enumerate(factors):
                    self._test.check(factor, k)
                    with self._changed:
                        self.calls += 1
                        self._changed.notify_all()
        except BaseException:
            with self._changed:
                self._failed = True
                self._changed.notify_all()
            raise


if __name__ == "__main__":
    CROUTD = os.path.abspath(sys.argv.pop(1))
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        print(f"skipped: requires {missing}")
        sys.exit(77)
    unittest.main()
