# SPDX-License-Identifier: Apache-2.0
"""TLS credentials of a client."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from typing import Any

import grpc

from crout._files import read_file, read_secret
from crout.errors import InvalidRequest


@dataclass(frozen=True)
class Tls:
    """Paths of PEM files; None if not set. Paths are stored, not contents, because clients are pickled."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None  # not a path: the name in the server's certificate

    def channel_options(self) -> list[tuple[str, Any]]:
        """Channel options."""
        return [] if self.server_name is None else [("grpc.ssl_target_name_override", self.server_name)]


def make_tls(
    tls: bool,
    ca: str | os.PathLike[str] | None,
    cert: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
    server_name: str | None = None,
) -> Tls | None:
    """The arguments of `connect`, checked. Raises InvalidRequest and UnreadableFile."""
    if not tls:
        if ca is not None or cert is not None or key is not None:
            raise InvalidRequest("ca, cert and key go with tls=True")
        return None
    if (cert is None) != (key is None):
        raise InvalidRequest("a client's certificate and its key go together: give both")
    paths = [None if path is None else os.fspath(path) for path in (ca, cert, key)]
    made = Tls(paths[0], paths[1], paths[2], server_name)
    credentials(made)  # reports unreadable files at once
    return made


def credentials(tls: Tls) -> Any:
    """Channel credentials. Raises InvalidRequest for invalid PEM, or a key that others can read."""
    key = None if tls.key is None else _pem(tls.key, read_secret(tls.key, "key"))
    ca, cert = (
        None if path is None else _pem(path, read_file(path, what))
        for path, what in ((tls.ca, "file of authorities"), (tls.cert, "certificate"))
    )
    if tls.cert is not None and tls.key is not None:
        _check_pair(tls.cert, tls.key)
    return grpc.ssl_channel_credentials(ca, key, cert)


def _check_pair(cert: str, key: str) -> None:
    """Raise InvalidRequest if the key is not the certificate's; gRPC's error would name neither.

    Other faults of the files are left to the handshake.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise InvalidRequest(
                f"the key {key} does not belong to the certificate {cert}: name the key of this certificate"
            ) from None


def _pem(path: str, text: bytes) -> bytes:
    if b"-----BEGIN " not in text:
        raise InvalidRequest(f"{path} is no PEM file: it has no BEGIN line")
    return text
