# SPDX-License-Identifier: Apache-2.0
"""Runs three daemons that share a bucket, behind a proxy with a configuration of deploy/proxies."""

import os
import re

from proxies import Proxy  # also finds the modules of the client's tests
from daemon import Server  # isort: skip
from prometheus_server import free_port  # isort: skip

NAMES = ("croutd-1", "croutd-2", "croutd-3")
FILES = {"nginx": "nginx-replicas.conf", "haproxy": "haproxy-replicas.cfg"}


class Replicas:
    """Daemons of CROUTD that share a bucket of the S3 server, and a proxy, `program`, in front of them.

    A lost replica's folders are adopted 12 to 15 s after its last renewal.
    """

    def __init__(self, croutd, program, directory, certificates):
        ports = {name: (free_port(), free_port()) for name in NAMES}
        self.daemons = {}
        for name, (port, pages) in ports.items():
            (directory / name).mkdir()
            self.daemons[name] = Server(
                croutd, directory / name, f"--store=s3://factors/{program}", "--s3-path-style=on",
                f"--s3-endpoint={os.environ['CROUT_S3_ENDPOINT']}", f"--replica-name={name}", "--store-lease=9s",
                "--max-store-bytes=1GiB", "--trusted-proxies=127.0.0.1", listen=f"127.0.0.1:{port}",
                metrics_listen=f"127.0.0.1:{pages}")

        def edit(text):
            for i, (port, pages) in enumerate(ports.values(), 1):
                text = re.sub(rf"(10.0.0.{i}:50051 .*check port) 9464", rf"\1 {pages}", text)
                text = text.replace(f"10.0.0.{i}:50051", f"127.0.0.1:{port}")
            return text

        self.proxy = Proxy(program, directory, certificates, FILES[program], edit)

    def stop(self):
        self.proxy.stop()
        for daemon in self.daemons.values():
            daemon.stop()


def folder_changes(daemons, change):
    """Returns the number of folders that the daemons have "adopted" or "lost"."""
    label = f'{{change="{change}"}}'
    return sum(daemon.metrics("crout_store_folder_changes_total")[label] for daemon in daemons)
