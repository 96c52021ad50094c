# SPDX-License-Identifier: Apache-2.0
"""Runs nginx and HAProxy with the configurations of deploy/proxies, on free ports of 127.0.0.1."""

import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/e2e/monitoring"), str(ROOT / "client/python/tests")]
from daemon import eventually  # noqa: E402
from prometheus_server import free_port  # noqa: E402

CONFIGURATIONS = ROOT / "deploy" / "proxies"
PROGRAMS = ("nginx", "haproxy")
TIMEOUT = 300  # seconds


def make_certificates(directory):
    """Makes the files that the configurations name."""
    subprocess.run([ROOT / "deploy/tls/make-certificates.sh", directory, "localhost", "127.0.0.1"],
                   check=True, capture_output=True)
    (directory / "server.pem").write_text(
        (directory / "server.crt").read_text() + (directory / "server.key").read_text())


class Proxy:
    """A proxy with a configuration of deploy/proxies, changed by `edit`. `defaults` are settings of nginx."""

    def __init__(self, program, directory, certificates, file, edit, name="", defaults=""):
        self.name = name or program
        self.port = free_port()
        self._log = directory / "log"
        configuration = directory / "configuration"
        text = edit((CONFIGURATIONS / file).read_text()).replace("/etc/crout/tls", str(certificates))
        configuration.write_text(getattr(self, f"_{program}")(directory, text, defaults))
        command = {"nginx": ["nginx", "-e", str(self._log), "-p", str(directory), "-c"],
                   "haproxy": ["haproxy", "-db", "-f"]}[program]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*command, str(configuration)], stdout=log, stderr=log)
        context = ssl.create_default_context(cafile=certificates / "ca.crt")
        context.set_alpn_protocols(["h2"])

        def serves():
            if self._process.poll() is not None:
                raise AssertionError(f"{self.name} ended: {self._log.read_text()}")
            try:
                with (socket.create_connection(("127.0.0.1", self.port)) as connection,
                      context.wrap_socket(connection, server_hostname="localhost") as encrypted):
                    return encrypted.selected_alpn_protocol() == "h2"
            except ConnectionRefusedError:
                return False

        assert eventually(serves), self._log.read_text()

    def _nginx(self, directory, text, defaults):
        """Returns the configuration within a main one."""
        text = text.replace("listen 443 ", f"listen 127.0.0.1:{self.port} ")
        paths = "".join(f"{name}_temp_path {directory};\n"
                        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return (f"daemon off; pid {directory}/pid; worker_processes 2;\nevents {{}}\n"
                f"http {{\naccess_log off;\n{paths}{defaults}{text}}}\n")

    def _haproxy(self, _, text, __):
        text = text.replace("bind :443", f"bind 127.0.0.1:{self.port}")
        if os.getuid() != 0:
            text = re.sub(r"^ *(chroot|user|group) .*\n", "", text, flags=re.M)
        return text

    def stop(self):
        self._process.terminate()
        self._process.wait(TIMEOUT)
