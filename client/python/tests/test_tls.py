# SPDX-License-Identifier: Apache-2.0
"""TLS with a separate daemon and certificates made by openssl."""

import asyncio
import pickle
import subprocess

import numpy as np
import pytest
from daemon import TIMEOUT, Daemon

import crout
import crout.aio


def openssl(place, command):
    subprocess.run(["openssl", *command.split()], check=True, capture_output=True, cwd=place)


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """A directory with ca.crt, other.crt, and server and client certificates signed by ca."""
    place = tmp_path_factory.mktemp("pki")
    (place / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    new = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    for name in ("ca", "other"):
        openssl(place, f"{new} -x509 -days 2 -subj /CN={name} -keyout {name}.key -out {name}.crt")
    for name in ("server", "client"):
        openssl(place, f"{new} -subj /CN={name} -keyout {name}.key -out {name}.csr")
        openssl(
            place,
            f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
            f"-extfile names -out {name}.crt",
        )
        (place / f"{name}.key").chmod(0o600)
    return place


@pytest.fixture(scope="module")
def secure(program, pki, tmp_path_factory):
    daemon = Daemon(
        program,
        tmp_path_factory.mktemp("croutd"),
        f"--tls-cert={pki}/server.crt",
        f"--tls-key={pki}/server.key",
        f"--tls-client-ca={pki}/ca.crt",
        "--tls-client-certs=required",
    )
    yield daemon
    daemon.stop()


def of_client(pki):
    return {"tls": True, "ca": pki / "ca.crt", "cert": pki / "client.crt", "key": pki / "client.key"}


def test_calls_are_encrypted(secure, pki):
    with crout.connect(secure.address, **of_client(pki)) as c:
        assert c.solve(2 * np.eye(3), np.ones(3)).tolist() == [0.5] * 3
        with pickle.loads(pickle.dumps(c)) as copy:
            assert copy.server_info()

    async def work():
        async with crout.aio.connect(secure.address, **of_client(pki)) as c:
            assert (await c.server_info()).devices

    asyncio.run(work())


def test_clients_without_valid_certificates_are_rejected(secure, pki):
    once = crout.RetryPolicy(max_attempts=1)
    good = of_client(pki)
    for options in (
        {},
        {"tls": True, "ca": good["ca"]},
        {**good, "ca": pki / "other.crt"},
    ):
        with (
            crout.connect(secure.address, retry=once, timeout=TIMEOUT, **options) as c,
            pytest.raises(crout.Unavailable),
        ):
            c.server_info()


def test_files_are_checked(pki, tmp_path):
    for options, wrong in (
        ({"ca": pki / "ca.crt"}, "give tls=True"),
        ({"tls": True, "cert": pki / "client.crt"}, "give both"),
        ({"tls": True, "ca": pki / "names"}, "not a PEM file"),
        ({**of_client(pki), "key": pki / "server.key"}, r"server\.key does not belong to .*client\.crt"),
    ):
        with pytest.raises(ValueError, match=wrong):
            crout.connect("localhost:1", **options)
    with pytest.raises(OSError, match=r"nowhere\.pem"):
        crout.connect("localhost:1", tls=True, ca="nowhere.pem")
    key = tmp_path / "open.key"
    key.write_bytes((pki / "client.key").read_bytes())
    key.chmod(0o644)
    with pytest.raises(ValueError, match="chmod 600"):
        crout.connect("localhost:1", tls=True, cert=pki / "client.crt", key=key)
