# SPDX-License-Identifier: Apache-2.0
"""Tokens with a daemon on loopback that authenticates callers."""

import asyncio
import hashlib
import pickle

import numpy as np
import pytest
from daemon import Daemon

import crout
import crout.aio

TOKEN = "crout_of-alice"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with a token in alice.token, and the identity file of the daemon."""
    place = tmp_path_factory.mktemp("tokens")
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    (place / "identities").write_text(f"[alice]\ntoken = sha256:{digest}\ntenants = a\nroles = solve\n")
    (place / "alice.token").write_text(TOKEN + "\n")
    for file in place.iterdir():
        file.chmod(0o600)
    return place


@pytest.fixture(scope="module")
def asking(program, place, tmp_path_factory):
    daemon = Daemon(program, tmp_path_factory.mktemp("croutd"), f"--identities={place}/identities")
    yield daemon
    daemon.stop()


def test_tokens_identify_the_caller(asking, place):
    for shown in ({"token": TOKEN}, {"token_file": place / "alice.token"}):
        with crout.connect(asking.address, **shown) as c:
            assert c.server_info()
            assert TOKEN not in repr(c)
            with pickle.loads(pickle.dumps(c)) as copy:
                assert copy.server_info()

        async def work(shown=shown):
            async with crout.aio.connect(asking.address, **shown) as c:
                assert (await c.server_info()).devices

        asyncio.run(work())
    with crout.connect(asking.address, token_file=place / "alice.token") as c:
        assert TOKEN.encode() not in pickle.dumps(c)


def test_rejected_callers_get_the_reason(asking, place):
    with crout.connect(asking.address) as c, pytest.raises(crout.NotPermitted) as caught:
        c.server_info()
    assert caught.value.code == "UNAUTHENTICATED"
    assert caught.value.reason == "NO_CREDENTIALS"
    with crout.connect(asking.address, token="wrong") as c, pytest.raises(PermissionError) as caught:
        c.server_info()
    assert caught.value.reason == "UNKNOWN_TOKEN"
    with crout.connect(asking.address, token_file=place / "alice.token") as c:
        with pytest.raises(crout.NotPermitted, match="the role factor") as caught:
            c.lu_factor(np.eye(3))
        assert caught.value.code == "PERMISSION_DENIED"
    with (
        crout.connect(asking.address, "other", token=TOKEN) as c,
        pytest.raises(crout.NotPermitted, match="may use only the tenant"),
    ):
        c.server_info()


def test_tokens_are_checked_and_not_shown(place, tmp_path):
    for options, wrong in (
        ({"token": TOKEN, "token_file": place / "alice.token"}, "omit one of them"),
        ({"token": "a secret"}, "give 1 to 4096"),
        ({"token": ""}, "give 1 to 4096"),
    ):
        with pytest.raises(ValueError, match=wrong) as caught:
            crout.connect("localhost:1", **options)
        assert "secret" not in str(caught.value)
    with pytest.raises(
        crout.UnreadableFile, match=r"nowhere cannot be read: No such file.*croutd token create"
    ) as missing:
        crout.connect("localhost:1", token_file="nowhere")
    assert isinstance(missing.value, OSError)
    readable = tmp_path / "open.token"
    readable.write_text(TOKEN)
    readable.chmod(0o640)
    with pytest.raises(ValueError, match="chmod 600"):
        crout.connect("localhost:1", token_file=readable)


def test_tokens_are_sent_over_secure_connections_only():
    for address in ("example.org:1", "192.0.2.1:1", "[2001:db8::1]:1", "dns:localhost:1"):
        with pytest.raises(ValueError, match="tls=True"):
            crout.connect(address, token=TOKEN)
        crout.connect(address, token=TOKEN, tls=True).close()
    for address in ("localhost:1", "127.8.0.1:1", "[::1]:1", "unix:/tmp/a"):
        crout.connect(address, token=TOKEN).close()
