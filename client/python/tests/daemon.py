# SPDX-License-Identifier: Apache-2.0
"""Runs croutd_test on ports that the system picks. Tests control it by failpoints."""

import re
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

TIMEOUT = 60.0
"""Seconds for what must happen at last, on any machine."""


def eventually(condition):
    """Return whether `condition()` becomes true within the time limit."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Daemon:
    def __init__(self, program: str, directory: Path, *flags: str) -> None:
        self._socket = directory / "failpoints"
        self._reached_before: dict[str, int] = {}
        self._log = (directory / "croutd.log").open("wb")
        self._process = subprocess.Popen(
            [
                program,
                f"--failpoints={self._socket}",
                "--listen=127.0.0.1:0",
                "--metrics-listen=127.0.0.1:0",
                "--devices=host",
                "--state-dir=none",
                "--drain-grace=0s",
                *flags,
            ],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        ready = re.match(r"croutd ready listen=(\S+) metrics=(\S+)", self._process.stdout.readline())
        if ready is None:
            self.stop()
            raise RuntimeError((directory / "croutd.log").read_text())
        self.address = ready[1]
        self.metrics_address = ready[2]
        self._metrics = f"http://{ready[2]}/metrics"

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(TIMEOUT)
        self._process.stdout.close()
        self._log.close()

    def await_ended(self, method: str, *codes: str) -> None:
        """Wait until the daemon has ended a call of `method` with one of these codes."""
        assert eventually(lambda: any(self._ended(method, code) for code in codes))

    def _ended(self, method: str, code: str) -> bool:
        with urllib.request.urlopen(self._metrics, timeout=TIMEOUT) as page:
            text = page.read().decode()
        series = f'crout_requests_total{{code="{code}",method="{method}"}} '
        return any(line.startswith(series) and not line.endswith(" 0") for line in text.splitlines())

    def hold(self, place: str) -> None:
        """Block all threads that reach the failpoint `place`, until `release`."""
        self._reached_before[place] = self.reached(place)
        self._command(f"hold {place}")

    def release(self, place: str) -> None:
        self._command(f"release {place}")

    def reached(self, place: str) -> int:
        return int(self._ask(f"reached {place}"))

    def await_reached(self, place: str, count: int) -> None:
        """Wait until `place` was reached `count` times since `hold`."""
        self._command(f"await {place} {self._reached_before[place] + count}")

    def advance(self, seconds: float) -> None:
        """Advance the daemon's clocks."""
        self._command(f"advance {round(seconds * 1e9)}")

    def _command(self, line: str) -> None:
        answer = self._ask(line)
        assert answer == "ok", answer

    def _ask(self, line: str) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect(str(self._socket))
            connection.sendall(f"{line}\n".encode())
            with connection.makefile() as answers:
                return answers.readline().strip()
