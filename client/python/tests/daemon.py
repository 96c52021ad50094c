# SPDX-License-Identifier: Apache-2.0
"""Runs croutd and croutd_test on addresses that the system picks. Tests control croutd_test by failpoints."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator
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


class Server:
    """A daemon that computes on the host and keeps no state. It can be killed and started again.

    `cores` restricts the daemon to these cores. `log` is the file of its standard error.
    """

    def __init__(
        self,
        program: str,
        directory: Path,
        *flags: str,
        listen: str = "127.0.0.1:0",
        metrics_listen: str = "127.0.0.1:0",
        cores: Iterable[int] | None = None,
    ) -> None:
        self.log = directory / "croutd.log"
        self._log = self.log.open("ab")
        self._arguments = [
            program,
            f"--listen={listen}",
            f"--metrics-listen={metrics_listen}",
            "--devices=host",
        ]
        self._arguments += ["--state-dir=none", "--drain-grace=0s", *flags]
        self._cores = cores
        self.start()

    def start(self) -> None:
        begin = time.monotonic()
        self._process = subprocess.Popen(
            self._arguments,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            preexec_fn=None if self._cores is None else lambda: os.sched_setaffinity(0, self._cores),
        )
        line = self._process.stdout.readline()
        self.start_seconds = time.monotonic() - begin
        """Seconds from exec to the line that reports the daemon as ready."""
        ready = re.match(r"croutd ready listen=(\S+) metrics=(\S+)", line)
        if ready is None:
            self.stop()
            raise RuntimeError(self.log.read_text())
        self.address = ready[1]
        self.metrics_address = ready[2]

    def stop(self) -> None:
        self.end()
        self._log.close()

    def end(self) -> None:
        """Stop the daemon. It can be started again."""
        self._process.terminate()
        self._await_end()

    def kill(self) -> None:
        """Kill the daemon. It can be started again."""
        self._process.kill()
        self._await_end()

    def kill_and_start(self) -> tuple[float, float]:
        """Kill the daemon and start it again. Return the times before and after."""
        begin = time.monotonic()
        self.kill()
        self.start()
        return begin, time.monotonic()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pause all threads of the daemon within the context."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _await_end(self) -> None:
        self._process.wait(TIMEOUT)
        self._process.stdout.close()

    def metrics(self, name: str) -> dict[str, float]:
        """Return the samples of a metric by their labels, such as '{code="OK",method="Solve"}'."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=TIMEOUT) as page:
            lines = page.read().decode().splitlines()
        samples = (re.fullmatch(rf"{name}(\{{.*\}})? (\S+)", line) for line in lines)
        return {sample[1] or "": float(sample[2]) for sample in samples if sample}

    def resident_bytes(self) -> float:
        return self.metrics("process_resident_memory_bytes")[""]


class Daemon(Server):
    """croutd_test with failpoints."""

    def __init__(self, program: str, directory: Path, *flags: str) -> None:
        self._socket = directory / "failpoints"
        self._reached_before: dict[str, int] = {}
        super().__init__(program, directory, f"--failpoints={self._socket}", *flags)

    def await_ended(self, method: str, *codes: str) -> None:
        """Wait until the daemon has ended a call of `method` with one of these codes."""
        labels = [f'{{code="{code}",method="{method}"}}' for code in codes]
        assert eventually(lambda: any(map(self.metrics("crout_requests_total").get, labels)))

    def hold(self, place: str) -> None:
        """Block all threads that reach the failpoint `place`, until `release`."""
        self._reached_before[place] = self.reached(place)
        self._command(f"hold {place}")

    def release(self, place: str) -> None:
        self._command(f"release {place}")

    def fail(self, place: str, code: int, message: str, times: int = 1) -> None:
        """Return this status to the next `times` threads that reach the failpoint `place`."""
        self._command(f"fail {place} {code} {times} {message}")

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
