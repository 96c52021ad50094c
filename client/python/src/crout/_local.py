# SPDX-License-Identifier: Apache-2.0
"""A server that belongs to this process."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crout._call import RetryPolicy
from crout._connection import connection_of
from crout._transport import Server
from crout.client import Client
from crout.errors import CroutError, InvalidRequest, Unavailable, UnreadableFile

_STOP_SECONDS = 15.0  # limit of a drain, which takes at most 10 s
_LOG_LINES = 10  # limit of the lines in an error
_USAGE_ERROR = 2  # exit status of croutd
# Directories of sockets: gRPC decodes an address as a URI, and the path of a socket has at most 107 bytes.
_FITS = re.compile(r"[A-Za-z0-9._/-]{1,80}")

# Flags and a configuration file override these defaults.
_DEFAULTS = {
    "CROUT_DRAIN_GRACE": "0s",
    "CROUT_DRAIN_LIMIT": "5s",
    "CROUT_METRICS_ACCESS": "off",
    "CROUT_METRICS_LISTEN": "127.0.0.1:0",
}


def local(
    *,
    memory: str | int | None = None,
    device: str | None = None,
    args: Sequence[str] = (),
    log: str | os.PathLike[str] | None = None,
) -> LocalClient:
    """Start a private server, and return a client of it. `close` ends the server.

    The server listens on a Unix socket in a new directory that only this user may enter. It is the `croutd`
    of the package crout-server, or without that package the first one on ``$PATH``. It ends at the latest
    with this process, even if this process is killed; the directory is then left behind. It ignores the
    variables ``CROUT_*``, and Ctrl-C. Threads may call this function at once. Each call starts a server.

    Parameters
    ----------
    memory : str or int, optional
        Host memory for jobs and factors, such as "8GiB", or in bytes. Default: half of the machine's memory,
        or of the control group's limit.
    device : str, optional
        "host", "cuda" (all GPUs), "cuda:0", ... Default: all GPUs, or the host if there is no GPU.
    args : sequence of str
        More flags of `croutd`, such as ``["--device-budget=8GiB"]``.
    log : path, optional
        File to which the server appends its log. By default the log is only used for errors of the start.

    Returns
    -------
    LocalClient
        Its `address` serves other programs of this user, such as ``croutctl --server=ADDRESS``.

    Raises
    ------
    InvalidRequest
        (A ValueError) The server rejects an option.
    UnreadableFile
        (An OSError) The log cannot be written, or no directory can be made.
    Unavailable
        (A ConnectionError) No `croutd` is installed, or it ended during the start. The message has the last
        lines of its log.
    """
    if isinstance(args, str):
        raise TypeError("args is a str: give a list of flags")
    flags = list(args)
    if memory is not None:
        flags.append(f"--host-budget={memory}")
    if device is not None:
        flags.append(f"--devices={device}")
    return LocalClient(_Daemon(flags, log))


class LocalClient(Client):
    """A client of a private server, from `local`.

    `close`, the end of a ``with`` block and the end of the process end the server: it finishes the calls of
    other clients for at most 5 seconds. Copies of this client in other processes, by pickle, are plain
    clients of the server.
    """

    def __init__(self, daemon: _Daemon) -> None:
        self._stop = weakref.finalize(self, daemon.stop)
        super().__init__(Server(daemon.address, None, None, RetryPolicy()))

    def __reduce__(self) -> tuple[Any, ...]:
        return connection_of, (Client, self._server)

    def close(self) -> None:
        """Close the connection, end the server and remove its directory. Its factors are lost."""
        try:
            super().close()
        finally:
            self._stop()


class _Daemon:
    """A process of croutd, ready to serve."""

    def __init__(self, flags: Sequence[str], log: str | os.PathLike[str] | None) -> None:
        program, environment = _program()
        base = tempfile.gettempdir()
        try:
            made = tempfile.mkdtemp(prefix="crout-", dir=base if _FITS.fullmatch(base) else "/tmp")
        except OSError as error:
            raise UnreadableFile(
                f"no directory for the socket: {error.filename}: {error.strerror}"
            ) from error
        self._directory = Path(made)
        self._parent = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"unix:{self._directory / 'socket'}"
        environment |= _DEFAULTS
        path = self._directory / "log" if log is None else Path(log)
        if log is None:
            environment["CROUT_LOG_LEVEL"] = "error"  # keeps the file small
        own = (f"--listen={self.address}", f"--stop-with-parent={self._parent}")
        try:
            begin = self._start([program, *own, *flags], environment, path)
            self._await_ready(path, begin)
        except BaseException:
            self.stop()
            raise

    def _start(self, command: Sequence[str], environment: dict[str, str], log: Path) -> int:
        """Start the process. Returns the size of the log before the start."""
        try:
            with log.open("ab") as file:
                begin = file.tell()
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=file,
                    env=environment,
                    start_new_session=True,  # a terminal's Ctrl-C is for this process
                )
                return begin
        except OSError as error:
            raise UnreadableFile(f"{error.filename}: {error.strerror}") from error

    def _await_ready(self, log: Path, begin: int) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout as output:
            if output.readline().startswith(b"croutd ready"):
                return
        status = self._process.wait()
        with log.open("rb") as file:
            file.seek(begin)
            lines = file.read().decode(errors="replace").splitlines()[-_LOG_LINES:]
        kind: type[CroutError] = InvalidRequest if status == _USAGE_ERROR else Unavailable
        raise kind("\n".join([f"croutd ended with status {status} before it was ready:", *lines]))

    def stop(self) -> None:
        """End the process and remove the directory. Does nothing in a forked child."""
        if os.getpid() != self._parent:
            return
        if self._process is not None:
            self._process.terminate()
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_STOP_SECONDS)
            finally:
                self._process.kill()  # does nothing after a drain
                self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)


def _program() -> tuple[str, dict[str, str]]:
    """Find croutd. Returns its path, and its environment without settings of other servers."""
    try:
        import crout_server
    except ImportError:
        found = shutil.which("croutd")
        if found is None:
            raise Unavailable(
                "croutd is not installed: run `pip install 'crout[server]'`, or put croutd on PATH"
            ) from None
        environment = dict(os.environ)
    else:
        found, environment = str(crout_server.program("croutd")), crout_server.environment()
    return found, {
        key: value
        for key, value in environment.items()
        if not key.startswith("CROUT_") and key != "NOTIFY_SOCKET"
    }
