#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the history of concurrent clients of three replicas, which are killed, paused and stopped in turn.

usage: s3_server.py PYTHON replicas_history.py CROUTD [SECONDS [SEED]]       60 seconds by default

history.py of the Python client's tests lists the rules. Requires the Python client and HAProxy.
"""

import itertools
import shutil
import sys
import time

import crout
from proxies import make_certificates  # also finds the modules of the client's tests
from replicas import NAMES, Replicas, folder_changes
import history  # isort: skip
from daemon import eventually  # isort: skip

TIMEOUT = 5  # seconds of a call, so that an outage does not hold all clients
# Number of refactorizations of the other replicas from an adoption to the end of a pause.
MISSED_REFACTORIZATIONS = 10


class Servers:
    """Replicas behind HAProxy, as the servers of history.py."""

    factors = 24

    def __init__(self, croutd, directory):
        certificates = directory / "tls"
        make_certificates(certificates)
        self._ca = certificates / "ca.crt"
        self._replicas = Replicas(croutd, "haproxy", directory, certificates)
        self._kinds = itertools.cycle(("kill", "pause", "stop"))

    def connect(self):
        return crout.connect(f"localhost:{self._replicas.proxy.port}", tls=True, ca=self._ca, timeout=TIMEOUT)

    def disturb(self):
        """Disturbs the replica with the most stored bytes, so that others adopt factors."""
        kind = next(self._kinds)
        name = max(NAMES, key=self._stored_bytes)
        begin = time.monotonic()
        getattr(self, f"_{kind}")(name)
        return history.Outage(begin, time.monotonic(), name, kind)

    def stop(self):
        self._replicas.stop()

    def _stored_bytes(self, name):
        return self._replicas.daemons[name].metrics("crout_store_bytes")['{kind="used"}']

    def _kill(self, name):
        self._replicas.daemons[name].kill_and_start()

    def _stop(self, name):
        self._replicas.daemons[name].end()
        self._replicas.daemons[name].start()

    def _pause(self, name):
        """Pauses the daemon until others have adopted its folders and changed factors."""
        daemon = self._replicas.daemons[name]
        others = [other for other in self._replicas.daemons.values() if other is not daemon]
        lost = folder_changes([daemon], "lost")
        adopted = folder_changes(others, "adopted")
        with daemon.paused():
            assert eventually(lambda: folder_changes(others, "adopted") > adopted)
            missed = _refactorizations(others) + MISSED_REFACTORIZATIONS
            assert eventually(lambda: _refactorizations(others) >= missed)
        # The daemon then has dropped its former factors.
        assert eventually(lambda: folder_changes([daemon], "lost") > lost)


def _refactorizations(daemons):
    label = '{code="OK",method="Refactorize"}'
    return sum(daemon.metrics("crout_requests_total").get(label, 0) for daemon in daemons)


if __name__ == "__main__":
    if not shutil.which("haproxy"):
        print("skipped: requires haproxy")
        sys.exit(77)
    if not history.main(Servers)["home", "moved"]:
        sys.exit("no factor was adopted")
