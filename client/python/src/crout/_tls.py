"""TLS: the files that a client shows and trusts."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Any

import grpc


@dataclass(frozen=True)
class Tls:
    """Paths of PEM files; None where there is none. Kept instead of what is in them: clients are pickled."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None  # no path: what the server's certificate has to have

    def channel_options(self) -> list[tuple[str, Any]]:
        """What a channel is to be made with."""
        return [] if self.server_name is None else [("grpc.ssl_target_name_override", self.server_name)]


def make_tls(
    tls: bool,
    ca: str | os.PathLike[str] | None,
    cert: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
    server_name: str | None = None,
) -> Tls | None:
    """What `connect` was given, checked. Raises ValueError and OSError."""
    if not tls:
        if ca is not None or cert is not None or key is not None:
            raise ValueError("ca, cert and key go with tls=True")
        return None
    if (cert is None) != (key is None):
        raise ValueError("a client's certificate and its key go together: give both")
    paths = [None if path is None else os.fspath(path) for path in (ca, cert, key)]
    made = Tls(paths[0], paths[1], paths[2], server_name)
    credentials(made)  # What cannot be read is told at once.
    return made


def credentials(tls: Tls) -> Any:
    """For a channel. Raises ValueError for a file that is no PEM, or a key that others can read."""
    if tls.key is not None:
        mode = stat.S_IMODE(os.stat(tls.key).st_mode)
        if mode & 0o077:
            raise ValueError(f"others can read the key {tls.key} (mode {mode:03o}): chmod 600 it")
    ca, cert, key = (None if path is None else _read(path) for path in (tls.ca, tls.cert, tls.key))
    return grpc.ssl_channel_credentials(ca, key, cert)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        text = file.read()
    if b"-----BEGIN " not in text:
        raise ValueError(f"{path} is no PEM file: it has no BEGIN line")
    return text
