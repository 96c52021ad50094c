# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens for authentication."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from crout._address import is_local
from crout._files import read_secret
from crout.errors import InvalidRequest


@dataclass(frozen=True)
class Token:
    """A token, or the path of its file. With a path, pickles of a client do not contain the token."""

    text: str | None = field(default=None, repr=False)
    file: str | None = None

    def read(self) -> str:
        """The token. Raises InvalidRequest and UnreadableFile."""
        if self.file is None:
            return _checked(self.text or "")
        advice = "give the file that `croutd token create --token-file` wrote"
        return _checked(read_secret(self.file, "token file", advice=advice).decode(errors="replace").strip())


def make_token(
    token: str | None, token_file: str | os.PathLike[str] | None, address: str, tls: bool
) -> Token | None:
    """The arguments of `connect`, checked. Raises InvalidRequest and UnreadableFile."""
    if token is None and token_file is None:
        return None
    if token is not None and token_file is not None:
        raise InvalidRequest("both token and token_file are set: leave one of them out")
    if not tls and not is_local(address):
        raise InvalidRequest(
            f"a token for {address} could be read on its way: give tls=True too, or the address of a "
            "Unix socket or of loopback"
        )
    made = Token(token, None if token_file is None else os.fspath(token_file))
    made.read()  # reports an invalid token at once
    return made


def _checked(token: str) -> str:
    # Never quoted in the error: it may be a token with a typing error.
    if not re.fullmatch("[!-~]{1,4096}", token):
        raise InvalidRequest("the token is not 1 to 4096 printable ASCII characters without spaces")
    return token
