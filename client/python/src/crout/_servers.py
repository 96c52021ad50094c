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
from dataclasses import dataclass, fields, replace
from pathlib import Path

from crout._address import check_address, check_tenant
from crout._files import read_file
from crout.errors import InvalidRequest, UnreadableFile

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DEFAULT = "127.0.0.1:50051"
_PATHS = ("ca", "cert", "key", "token_file")
_TEXTS = ("address", "tenant", "server_name", *_PATHS)


@dataclass(frozen=True)
class Said:
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

    def whole(self) -> Said:
        """Complete unset fields from the environment, then from the file of servers.

        Raises InvalidRequest and UnreadableFile.
        """
        said = self._or(_environment())
        if said.address is None:
            said = replace(said, address=_DEFAULT)
        named = _find(said.address or "")
        if named is not None:
            said = replace(said, address=named.address)._or(named)
        elif not self.tls and any((self.ca, self.cert, self.key, self.server_name)):
            raise InvalidRequest("ca, cert, key and server_name go with tls=True")
        if said.tls is None:
            said = replace(said, tls=any((said.ca, said.cert, said.key, said.server_name)))
        return said

    def _or(self, other: Said) -> Said:
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


def _environment() -> Said:
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
        raise InvalidRequest("CROUT_TLS is neither true nor false: write one of them")
    tls = True if switch in ("1", "true", "on", "yes") else None
    return Said(tls=tls, **value)


def _find(address: str) -> Said | None:
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
                raise InvalidRequest(f"{error}, or the name of a server: there is no {path}") from None
            raise
        if address not in servers:
            raise InvalidRequest(
                f"{error}, or the name of a server: {path} has no server [{address}]"
            ) from None
        return servers[address]


def _text_of(path: Path) -> str:
    content = read_file(path, "file of servers", writers=False)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(f"{path} line {line}: not UTF-8: save the file as such") from None


class _Reader:
    """Reads a file of servers line by line: [name], key = "value", tls = true."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line = 0

    def read(self, text: str) -> dict[str, Said]:
        servers: dict[str, dict[str, str | bool | None]] = {}
        section: str | None = None
        for line in text.split("\n"):
            self._line += 1
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                self._check_whole(section, servers)
                section = self._section(line)
                if section in servers:
                    raise self._refusal(f"a second [{section}]")
                servers[section] = {}
                continue
            key, equals, value = (part.strip() for part in line.partition("="))
            if not equals:
                raise self._refusal('neither [NAME] nor key = "value"')
            if section is None:
                raise self._refusal("it belongs to no server: begin with [NAME]")
            if key in servers[section]:
                raise self._refusal(f"a second '{key}' of [{section}]")
            servers[section][key] = self._value(key, value)
        self._check_whole(section, servers)
        return {name: Said(**said) for name, said in servers.items()}  # type: ignore[arg-type]

    def _refusal(self, why: object) -> InvalidRequest:
        return InvalidRequest(f"{self._path} line {self._line}: {why}")

    def _check_whole(self, section: str | None, servers: dict[str, dict[str, str | bool | None]]) -> None:
        if section is not None and "address" not in servers[section]:
            raise self._refusal(f"[{section}] ends without an address")

    def _section(self, line: str) -> str:
        line = line.partition("#")[0].strip()
        if not line.endswith("]"):
            raise self._refusal("a [ without its ]")
        name = line[1:-1].strip()
        if not _NAME.fullmatch(name):
            raise self._refusal("a name has 1 to 64 of [A-Za-z0-9_.-]")
        return name

    def _value(self, key: str, value: str) -> str | bool | None:
        if key == "tls":
            word = value.partition("#")[0].strip()
            if word not in ("true", "false"):
                raise self._refusal("tls is true or false")
            return True if word == "true" else None
        if key == "token":
            raise self._refusal(
                'no tokens here: put it into a file of mode 600, and give token_file = "PATH"'
            )
        if key not in _TEXTS:
            raise self._refusal(
                f"'{key}' is none of address, tenant, tls, ca, cert, key, server_name, token_file"
            )
        text = self._unquote(value)
        try:
            if key == "address":
                check_address(text)
            if key == "tenant":
                check_tenant(text)
        except ValueError as error:
            raise self._refusal(error) from None
        return self._path_of(text) if key in _PATHS else text

    def _unquote(self, value: str) -> str:
        quoted = re.fullmatch(r"""(?:"([^"]*)"|'([^']*)')\s*(#.*)?""", value)
        if quoted is None:
            raise self._refusal('a value is in quotes, with nothing behind it: key = "value"')
        if quoted[1] is not None and "\\" in quoted[1]:
            raise self._refusal("a \\ stands in 'single quotes' alone")
        return quoted[2] if quoted[1] is None else quoted[1]

    def _path_of(self, text: str) -> str:
        if not text:
            raise self._refusal("an empty path")
        if text.startswith("~/"):
            return os.environ.get("HOME", "") + text[1:]
        return str(self._path.parent / text)
