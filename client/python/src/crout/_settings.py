# SPDX-License-Identifier: Apache-2.0
"""Settings of a client: address, tenant, TLS and token, from arguments, the environment and files."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import ssl
import stat
import sys
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import grpc

from crout.errors import InvalidRequest, UnreadableFile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Priority = Literal["interactive", "normal", "batch"]
PRIORITIES = get_args(Priority)

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MAX_BYTES = 32768  # limit of the file of servers
_DEFAULT = "127.0.0.1:50051"
_PATHS = ("ca", "cert", "key", "token_file")
_TEXTS = ("address", "tenant", "server_name", *_PATHS)


@dataclass(frozen=True)
class Settings:
    """Address of a server, and the caller's settings for it; None: not set."""

    address: str | None = None
    tenant: str | None = None
    tls: bool | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None
    token: str | None = None
    token_file: str | None = None

    def complete(self) -> Settings:
        """Complete unset fields from the environment, then from the file of servers.

        Raises InvalidRequest and UnreadableFile.
        """
        found = self._fill_from(_environment())
        if found.address is None:
            found = replace(found, address=_DEFAULT)
        named = _find(found.address or "")
        if named is not None:
            found = replace(found, address=named.address)._fill_from(named)
        elif not self.tls and any((self.ca, self.cert, self.key, self.server_name)):
            raise InvalidRequest("ca, cert, key and server_name need TLS: give tls=True")
        if found.tls is None:
            found = replace(found, tls=any((found.ca, found.cert, found.key, found.server_name)))
        return found

    def _fill_from(self, other: Settings) -> Settings:
        values = {
            field.name: getattr(other, field.name)
            for field in fields(self)
            if getattr(self, field.name) is None
        }
        if self.token is not None or self.token_file is not None:
            values.pop("token_file", None)
        if self.cert is not None or self.key is not None:  # both come from the same source
            values.pop("cert", None)
            values.pop("key", None)
        if self.tls is False:  # set explicitly: no TLS at all
            values = {
                key: value for key, value in values.items() if key in ("address", "tenant", "token_file")
            }
        return replace(self, **values)


def servers_file() -> Path | None:
    """Path of the file of named servers, which need not exist; None if the environment gives none.

    libcrout and croutctl read the same file. It has one TOML section for each server, in which only
    ``address`` is required.

    >>> [lab]
    >>> address = "solver.example.org:50051"
    >>> tls = true                        # implied by any of the next four keys
    >>> ca = "lab-ca.crt"                 # relative to the file's directory, or with ~/
    >>> cert = "alice.crt"
    >>> key = "alice.key"
    >>> server_name = "crout.example.org"
    >>> token_file = "alice.token"
    >>> tenant = "alice"
    """
    if file := os.environ.get("CROUT_SERVERS"):
        return Path(file)
    config = os.environ.get("XDG_CONFIG_HOME", "")
    if config.startswith("/"):
        return Path(config, "crout", "servers.toml")
    home = os.environ.get("HOME")
    return Path(home, ".config", "crout", "servers.toml") if home else None


def _environment() -> Settings:
    value = {
        key: os.environ.get(f"CROUT_{name}") or None
        for key, name in (
            ("address", "SERVER"),
            ("tenant", "TENANT"),
            ("ca", "CA"),
            ("cert", "CERT"),
            ("key", "KEY"),
            ("token_file", "TOKEN_FILE"),
        )
    }
    switch = os.environ.get("CROUT_TLS", "").lower()
    if switch not in ("", "0", "false", "off", "no", "1", "true", "on", "yes"):
        raise InvalidRequest(f"CROUT_TLS={switch!r} is not a boolean: set it to true or false")
    tls = True if switch in ("1", "true", "on", "yes") else None
    return Settings(tls=tls, **value)


def _find(address: str) -> Settings | None:
    """Find the server named `address`; None if `address` is an address. Raises InvalidRequest for neither."""
    try:
        check_address(address)
        return None
    except ValueError as error:
        path = servers_file()
        if path is None or not _NAME.fullmatch(address):
            raise
        try:
            servers = _Reader(path).read(_text_of(path))
        except UnreadableFile as failure:
            if isinstance(failure.__cause__, FileNotFoundError):
                raise InvalidRequest(f"the file of servers {path} does not exist, and {error}") from None
            raise
        if address not in servers:
            names = ", ".join(sorted(servers)) or "none"
            raise InvalidRequest(f"{path} has no server {address!r} (it has {names}), and {error}") from None
        return servers[address]


def _text_of(path: Path) -> str:
    content = read_file(path, "file of servers", writers=False)
    if len(content) > _MAX_BYTES:
        raise InvalidRequest(
            f"{path} has {len(content)} bytes; the limit is {_MAX_BYTES}. Split it into several files"
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(f"{path} line {line}: the text is not UTF-8: save the file as UTF-8") from None


class _Reader:
    """Reads a file of servers. TOML nests tables at dots: the server "a.b" is table b in table a."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = ""
        self._servers: dict[str, Settings] = {}

    def read(self, text: str) -> dict[str, Settings]:
        self._text = text
        try:
            root = tomllib.loads(text + "\n")  # the newline gives an error in the last line its number
        except (ValueError, RecursionError) as error:  # the message has the line's number
            raise InvalidRequest(f"{self._path}: {error}") from None
        self._read_table("", root)
        return self._servers

    def _read_table(self, name: str, table: dict[str, Any]) -> None:
        values: dict[str, Any] = {}
        for key, value in table.items():
            if isinstance(value, dict):
                inner = f"{name}.{key}" if name else key
                if not _NAME.fullmatch(inner):
                    raise self._refusal(
                        f"the name {inner[:64]!r} is invalid: give 1 to 64 characters of [A-Za-z0-9_.-]",
                        inner,
                    )
                self._read_table(inner, value)
            elif not name:
                raise self._refusal(f"{key[:64]!r} belongs to no server: write [NAME] before it", name, key)
            else:
                try:
                    values[key] = self._value(key, value)
                except ValueError as error:
                    raise self._refusal(error, name, key) from None
        if not values and (table or not name):
            return
        if "address" not in values:
            raise self._refusal(f'[{name}] has no address: add address = "HOST:PORT"', name)
        if name in self._servers:
            raise self._refusal(f"[{name}] is a duplicate: rename or remove it", name)
        self._servers[name] = Settings(**values)

    def _refusal(self, why: object, name: str, key: str | None = None) -> InvalidRequest:
        """Make an error with the line of the table `name`, or of its `key`, if the line can be found."""
        section = ""
        for number, line in enumerate(self._text.split("\n"), 1):
            if header := re.match(r"\s*\[([^]]*)\]", line):
                section = re.sub(r"[\s\"']", "", header[1])
                found = key is None and section == re.sub(r"\s", "", name)
            else:
                found = section == name and line.partition("=")[0].strip(" \t\"'") == key
            if found:
                return InvalidRequest(f"{self._path} line {number}: {why}")
        return InvalidRequest(f"{self._path}: {why}")

    def _value(self, key: str, value: object) -> str | bool | None:
        if key == "tls":
            if not isinstance(value, bool):
                raise ValueError("tls is not a boolean: write true or false")
            return value or None
        if key == "token":
            raise ValueError(
                'token is not allowed: write the token to a file of mode 600, and give token_file = "PATH"'
            )
        if key not in _TEXTS:
            raise ValueError(
                f"the key {key[:64]!r} is unknown: use address, tenant, tls, ca, cert, key, server_name or "
                "token_file"
            )
        if not isinstance(value, str) or re.search(r"[\x00-\x1f\x7f]", value):
            raise ValueError(f'{key} is not a string without control characters: write {key} = "VALUE"')
        if key == "address":
            check_address(value)
        if key == "tenant":
            check_tenant(value)
        if key not in _PATHS:
            return value
        if not value:
            raise ValueError(f"{key} is an empty path: give the path of a file")
        if value.startswith("~/"):
            return os.environ.get("HOME", "") + value[1:]
        return str(self._path.parent / value)


_SCHEMES = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:")
_FORMS = "write host:port, [IPv6]:port or unix:PATH"


def check_address(address: str) -> None:
    """Raise InvalidRequest, with the expected form, for an invalid address.

    Valid are "host:port", with a port from 1 to 65535 and IPv6 hosts in brackets, and gRPC targets that
    start with one of `_SCHEMES`. Only gRPC checks the rest of a target.
    """
    if not address:
        raise InvalidRequest(f"the server's address is empty: {_FORMS}")
    if why := _address_fault(address):
        raise InvalidRequest(f"the server's address {address!r} {why}: {_FORMS}")


def is_local(address: str) -> bool:
    """Whether connections stay on this machine: localhost, a loopback address, a Unix socket."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = re.sub(r"^\[(.+)\]$", r"\1", address.rpartition(":")[0])
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"


def check_tenant(tenant: str) -> None:
    """Raise InvalidRequest unless `tenant` is 1 to 64 characters of [A-Za-z0-9_.-]."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", tenant):
        raise InvalidRequest(f"the tenant {tenant!r} is invalid: give 1 to 64 characters of [A-Za-z0-9_.-]")


def _address_fault(address: str) -> str:
    for scheme in _SCHEMES:
        if address.startswith(scheme):
            return "ends after its scheme" if address == scheme else ""
    if not re.fullmatch("[!-~]+", address):
        return "has characters other than printable ASCII"
    if "/" in address:
        return "is not a host and a port"
    host, colon, port = address.rpartition(":")
    if not colon or re.fullmatch(r"\[.*\]", address):
        return "has no port"
    if not host:
        return "has no host"
    if ":" in re.sub(r"^\[.+\]$", "", host) or host == "[]":
        return "has an IPv6 address without brackets"
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        return "has no port from 1 to 65535"
    return ""


def read_file(path: str | os.PathLike[str], what: str, *, advice: str = "", writers: bool = True) -> bytes:
    """Read a file.

    Parameters
    ----------
    what : str
        Description of the file in errors.
    advice : str
        Remedy in the error for a file that cannot be read.
    writers : bool
        Whether others than the owner may have permission to write the file.

    Raises
    ------
    UnreadableFile
        The file cannot be read.
    InvalidRequest
        Others have permission to write the file, and `writers` is false.
    """
    content, mode = _read(path, what, advice)
    if not writers and mode & 0o022:
        raise InvalidRequest(
            f"others can write {path} (mode {mode:03o}) and could redirect tokens: run chmod 600 {path}"
        )
    return content


def read_secret(path: str | os.PathLike[str], what: str, *, advice: str = "") -> bytes:
    """Like `read_file`, for a file that only its owner may access; otherwise raises InvalidRequest."""
    content, mode = _read(path, what, advice)
    if mode & 0o077:
        raise InvalidRequest(f"others can read the {what} {path} (mode {mode:03o}): run chmod 600 {path}")
    return content


def _read(path: str | os.PathLike[str], what: str, advice: str) -> tuple[bytes, int]:
    try:
        with open(path, "rb") as file:
            return file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except OSError as error:
        hint = f"; {advice}" if advice else ""
        raise UnreadableFile(f"the {what} {path} cannot be read: {error.strerror}{hint}") from error


@dataclass(frozen=True)
class Tls:
    """Paths of PEM files; None if not set. Stores no contents, because clients are pickled."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None  # not a path: the name in the server's certificate

    def channel_options(self) -> list[tuple[str, Any]]:
        """Return the options of a channel."""
        return [] if self.server_name is None else [("grpc.ssl_target_name_override", self.server_name)]


def make_tls(
    tls: bool, ca: str | None, cert: str | None, key: str | None, server_name: str | None
) -> Tls | None:
    """Check the TLS arguments of `connect`. Raises InvalidRequest and UnreadableFile."""
    if not tls:
        if ca is not None or cert is not None or key is not None:
            raise InvalidRequest("ca, cert and key need TLS: give tls=True")
        return None
    if (cert is None) != (key is None):
        raise InvalidRequest("only one of cert and key is set: give both")
    made = Tls(ca, cert, key, server_name)
    credentials(made)  # reports unreadable files at once
    return made


def credentials(tls: Tls) -> Any:
    """Make channel credentials.

    Raises UnreadableFile, and InvalidRequest for invalid PEM and for a key that others can read.
    """
    key = None if tls.key is None else _pem(tls.key, read_secret(tls.key, "key"))
    ca, cert = (
        None if path is None else _pem(path, read_file(path, what))
        for path, what in ((tls.ca, "file of authorities"), (tls.cert, "certificate"))
    )
    if tls.cert is not None and tls.key is not None:
        _check_pair(tls.cert, tls.key)
    return grpc.ssl_channel_credentials(ca, key, cert)


def _check_pair(cert: str, key: str) -> None:
    """Raise InvalidRequest if the key does not belong to the certificate; gRPC's error would name neither.

    The handshake reports other faults of the files.
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
        raise InvalidRequest(f"{path} is not a PEM file: it has no BEGIN line")
    return text


@dataclass(frozen=True)
class Token:
    """A token, or the path of its file. With a path, the pickle of a client does not contain the token."""

    text: str | None = field(default=None, repr=False)
    file: str | None = None

    def read(self) -> str:
        """Return the token. Raises InvalidRequest and UnreadableFile."""
        if self.file is None:
            return _checked_token(self.text or "")
        advice = "give the file that `croutd token create --token-file` wrote"
        content = read_secret(self.file, "token file", advice=advice)
        return _checked_token(content.decode(errors="replace").strip())


def make_token(token: str | None, token_file: str | None, address: str, tls: bool) -> Token | None:
    """Check the token arguments of `connect`. Raises InvalidRequest and UnreadableFile."""
    if token is None and token_file is None:
        return None
    if token is not None and token_file is not None:
        raise InvalidRequest("both token and token_file are set: omit one of them")
    if not tls and not is_local(address):
        raise InvalidRequest(
            f"the token would be sent to {address} unencrypted: give tls=True, or the address of a Unix "
            "socket or of loopback"
        )
    made = Token(token, token_file)
    made.read()  # reports an invalid token at once
    return made


def _checked_token(token: str) -> str:
    # The error does not quote the text, which may be a mistyped token.
    if not re.fullmatch("[!-~]{1,4096}", token):
        raise InvalidRequest("the token is invalid: give 1 to 4096 printable ASCII characters without spaces")
    return token
