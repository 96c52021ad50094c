# SPDX-License-Identifier: Apache-2.0
"""Settings of a client from the user's file of servers and from the environment.

libcrout and croutctl read the same file: TOML sections, in which only ``address`` is required.

>>> [lab]
>>> address = "solver.example.org:50051"
>>> tls = true                        # implied by any of the next four
>>> ca = "lab-ca.crt"                 # relative to the file's directory, or with ~/
>>> cert = "alice.crt"
>>> key = "alice.key"
>>> server_name = "crout.example.org"
>>> token_file = "alice.token"
>>> tenant = "alice"
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from crout._address import check_address, check_tenant
from crout._files import read_file
from crout.errors import InvalidRequest, UnreadableFile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MAX_BYTES = 32768  # as in libcrout
_DEFAULT = "127.0.0.1:50051"
_PATHS = ("ca", "cert", "key", "token_file")
_TEXTS = ("address", "tenant", "server_name", *_PATHS)


@dataclass(frozen=True)
class Settings:
    """Settings of a server and of the caller there; None: not set."""

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
            raise InvalidRequest("ca, cert, key and server_name go with tls=True")
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
        if self.cert is not None or self.key is not None:  # both come from the same place
            values.pop("cert", None)
            values.pop("key", None)
        if self.tls is False:  # set explicitly: no TLS at all
            values = {
                key: value for key, value in values.items() if key in ("address", "tenant", "token_file")
            }
        return replace(self, **values)


def servers_file() -> Path | None:
    """Path of the file of named servers, which may not exist; None if the environment gives none."""
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
        raise InvalidRequest(f"CROUT_TLS={switch!r} is neither true nor false: set it to one of them")
    tls = True if switch in ("1", "true", "on", "yes") else None
    return Settings(tls=tls, **value)


def _find(address: str) -> Settings | None:
    """The server of that name; None if `address` is an address. Raises InvalidRequest for neither."""
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
                raise InvalidRequest(f"no file {path} of servers, and {error}") from None
            raise
        if address not in servers:
            names = ", ".join(sorted(servers)) or "none"
            raise InvalidRequest(f"no server {address!r} in {path} (it has {names}), and {error}") from None
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
        raise InvalidRequest(f"{path} line {line}: not UTF-8: save the file as such") from None


class _Reader:
    """Reads a file of servers. TOML nests tables at dots: the server "a.b" is the table b in a."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = ""
        self._servers: dict[str, Settings] = {}

    def read(self, text: str) -> dict[str, Settings]:
        self._text = text
        try:
            root = tomllib.loads(text + "\n")  # errors at the end of the last line name this line
        except (ValueError, RecursionError) as error:  # the message has the line
            raise InvalidRequest(f"{self._path}: {error}") from None
        self._read_table("", root)
        return self._servers

    def _read_table(self, name: str, table: dict[str, Any]) -> None:
        values: dict[str, Any] = {}
        for key, value in table.items():
            if isinstance(value, dict):
                inner = f"{name}.{key}" if name else key
                if not _NAME.fullmatch(inner):
                    raise self._refusal("a name has 1 to 64 of [A-Za-z0-9_.-]", inner)
                self._read_table(inner, value)
            elif not name:
                raise self._refusal("it belongs to no server: begin with [NAME]", name, key)
            else:
                try:
                    values[key] = self._value(key, value)
                except ValueError as error:
                    raise self._refusal(error, name, key) from None
        if not values and (table or not name):
            return
        if "address" not in values:
            raise self._refusal(f"[{name}] ends without an address", name)
        if name in self._servers:
            raise self._refusal(f"a second [{name}]", name)
        self._servers[name] = Settings(**values)

    def _refusal(self, why: object, name: str, key: str | None = None) -> InvalidRequest:
        """Names the line of the table `name`, or of its `key`, where it is written in the usual form."""
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
                raise ValueError("tls is true or false")
            return value or None
        if key == "token":
            raise ValueError('no tokens here: put it into a file of mode 600, and give token_file = "PATH"')
        if key not in _TEXTS:
            raise ValueError(
                f"{key[:64]!r} is none of address, tenant, tls, ca, cert, key, server_name, token_file"
            )
        if not isinstance(value, str) or re.search(r"[\x00-\x1f\x7f]", value):
            raise ValueError(f'{key} is a string without control characters: key = "value"')
        if key == "address":
            check_address(value)
        if key == "tenant":
            check_tenant(value)
        if key not in _PATHS:
            return value
        if not value:
            raise ValueError("an empty path")
        if value.startswith("~/"):
            return os.environ.get("HOME", "") + value[1:]
        return str(self._path.parent / value)
