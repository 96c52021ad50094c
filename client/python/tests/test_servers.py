# SPDX-License-Identifier: Apache-2.0
"""Servers by name, and settings from the environment."""

import asyncio

import numpy as np
import pytest
from test_tls import pki, secure  # noqa: F401

import crout
import crout.aio
from crout._settings import Settings, _Reader


@pytest.fixture(autouse=True)
def servers(tmp_path, monkeypatch):
    """The path of a file of servers. No other settings are in the environment."""
    for name in ("SERVER", "TENANT", "TLS", "CA", "CERT", "KEY", "TOKEN_FILE"):
        monkeypatch.delenv(f"CROUT_{name}", raising=False)
    path = tmp_path / "servers.toml"
    monkeypatch.setenv("CROUT_SERVERS", str(path))
    return path


def test_a_name_selects_a_server_of_the_file(secure, pki, servers):  # noqa: F811
    servers.write_text(
        f'# mine\n[lab] # there\naddress = "{secure.address}"\ntls = true\nca = "{pki}/ca.crt"\n'
        f'cert = \'{pki}/client.crt\'\nkey = "{pki}/client.key"\nserver_name = "localhost"\n'
    )
    with crout.connect("lab") as c:
        assert c.solve(2 * np.eye(3), np.ones(3)).tolist() == [0.5] * 3

    async def work():
        async with crout.aio.connect("lab") as c:
            assert (await c.server_info()).tenants

    asyncio.run(work())


def test_the_environment_supplies_unset_options(secure, pki, monkeypatch):  # noqa: F811
    monkeypatch.setenv("CROUT_SERVER", secure.address)
    monkeypatch.setenv("CROUT_TLS", "true")
    monkeypatch.setenv("CROUT_CA", str(pki / "ca.crt"))
    monkeypatch.setenv("CROUT_CERT", str(pki / "client.crt"))
    monkeypatch.setenv("CROUT_KEY", str(pki / "client.key"))
    with crout.connect() as c:
        assert c.server_info()
    monkeypatch.setenv("CROUT_TLS", "maybe")
    with pytest.raises(ValueError, match="CROUT_TLS"):
        crout.connect()


def test_options_take_precedence_over_the_file(servers, tmp_path):
    servers.write_text('[lab]\naddress = "h:1"\ntenant = "a"\nca = "ca.crt"\ncert = "c"\nkey = "k"\n')
    found = Settings("lab", tenant="b", cert="own.crt").complete()
    assert (found.address, found.tenant, found.tls) == ("h:1", "b", True)
    assert (found.ca, found.cert, found.key) == (str(tmp_path / "ca.crt"), "own.crt", None)


def test_unknown_names_are_rejected(servers):
    with pytest.raises(
        ValueError, match=r"file of servers .* does not exist, and the server's address 'lab' has no port"
    ):
        crout.connect("lab")
    servers.write_text('[home]\naddress = "h:1"\n')
    with pytest.raises(ValueError, match=r"has no server 'lab' \(it has home\)"):
        crout.connect("lab")
    servers.chmod(0o666)
    with pytest.raises(ValueError, match="chmod 600"):
        crout.connect("home")


def test_the_file_of_servers_names_a_token_file(servers, tmp_path):
    token = tmp_path / "a.token"
    token.write_text("crout_t\n")
    token.chmod(0o644)
    servers.write_text('[lab]\naddress = "h:1"\ntls = true\ntoken_file = "a.token"\n')
    with pytest.raises(ValueError, match=r"mode 644.*chmod 600"):
        crout.connect("lab")
    token.chmod(0o600)
    crout.connect("lab").close()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('address = "h:1"', "line 1: 'address' belongs to no server"),
        ("[lab]\naddress", "line 2"),
        ("[lab]\naddress = h:1", "line 2"),
        ('[lab]\naddress = "h:1" x', "line 2"),
        ('[lab]\naddress = "h"', "line 2: the server's address 'h' has no port"),
        ('[lab]\naddress = "h:1"\naddress = "h:2"', "line 3"),
        ('[lab]\naddress = "h:1"\n[lab]', "line 3"),
        ("[lab", "end of document|line 1"),
        ("['a b']", "line 1: the name 'a b' is invalid"),
        ('[lab]\n[home]\naddress = "h:1"', r"\[lab\] has no address"),
        ('[lab]\ntls = "true"', "tls is not a boolean"),
        ('[lab]\nca = ""', "line 2: ca is an empty path"),
        ('[lab]\ncertificate = "a"', "line 2: the key 'certificate' is unknown"),
        ('[lab]\ntoken = "crout_secret"', "line 2: token is not allowed.*token_file"),
        ("[lab]\ntoken = crout_secret", "line 2"),
        ('[lab]\nca = "a\\u0000b"', "line 2: ca is not a string without control"),
        ("[lab]\nca = 1", "line 2: ca is not a string"),
        ('[[lab]]\naddress = "h:1"', "belongs to no server"),
        ('[a.b]\naddress = "h:1"\n["a.b"]\naddress = "h:1"', r"\[a.b\] is a duplicate"),
        ("[lab]\nca = " + "[" * 30000, "servers.toml: "),
        ("[" + "a." * 8000 + "a]", "1 to 64"),
    ],
)
def test_errors_name_the_line(servers, text, why):
    with pytest.raises(ValueError, match=why) as caught:
        _Reader(servers).read(text)
    assert "secret" not in str(caught.value)


def test_reads_toml(servers):
    text = '[a.b.c]\naddress = """\nh:1""" # dots\n[home]\naddress = "h\\u003a2"\r\n'
    read = _Reader(servers).read(text)
    assert {name: found.address for name, found in read.items()} == {"a.b.c": "h:1", "home": "h:2"}


def test_an_invalid_file_is_reported_with_its_line(servers):
    servers.write_bytes(b'[lab]\naddress = "h:1"\ntenant = "J\xe4ger"\n')
    with pytest.raises(
        crout.InvalidRequest, match=r"servers\.toml line 3: the text is not UTF-8: save the file"
    ):
        crout.connect("lab")
    servers.write_text("\n" * 40000)
    with pytest.raises(crout.InvalidRequest, match="has 40000 bytes; the limit is 32768"):
        crout.connect("lab")
    servers.unlink()
    servers.mkdir()
    with pytest.raises(crout.UnreadableFile, match=r"the file of servers .* cannot be read: Is a directory"):
        crout.connect("lab")
