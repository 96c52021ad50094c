# SPDX-License-Identifier: Apache-2.0
"""Failures of authentication and their errors. Tokens are signed by openssl."""

import base64
import hashlib
import json
import subprocess
import time

import numpy as np
import pytest
from daemon import TIMEOUT, Daemon, eventually
from test_tls import openssl

import crout

TOKEN = "crout_of-alice"
LATE = "crout_of-alice-last-year"
ONCE = crout.RetryPolicy(max_attempts=1)


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Authority:
    """Signs tokens with RS256."""

    def __init__(self, key):
        self._key = key
        openssl(key.parent, f"genrsa -out {key} 2048")

    def jwks(self):
        shown = subprocess.run(
            ["openssl", "rsa", "-in", self._key, "-noout", "-modulus"], capture_output=True, check=True
        ).stdout
        modulus = bytes.fromhex(shown.decode().strip().partition("=")[2])
        key = {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig"}
        return json.dumps({"keys": [{**key, "n": base64url(modulus), "e": "AQAB"}]})

    def sign(self, audience="crout", seconds=3600):
        claims = {"iss": "sso", "sub": "alice@sso", "aud": audience, "exp": int(time.time()) + seconds}
        parts = ({"alg": "RS256", "kid": "one", "typ": "JWT"}, claims)
        text = ".".join(base64url(json.dumps(part).encode()) for part in parts)
        signed = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", self._key],
            input=text.encode(),
            capture_output=True,
            check=True,
        )
        return f"{text}.{base64url(signed.stdout)}"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Certificates of two authorities, an identity file, and the keys of the token authority."""
    place = tmp_path_factory.mktemp("callers")
    (place / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1,DNS:alice.example.org")
    new = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    for name in ("ca", "other"):
        openssl(place, f"{new} -x509 -days 2 -subj /CN={name} -keyout {name}.key -out {name}.crt")
    for name, days in (("server", 2), ("client", 2), ("late", -1)):
        openssl(place, f"{new} -subj /CN={name} -keyout {name}.key -out {name}.csr")
        openssl(
            place,
            f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days {days} "
            f"-extfile names -out {name}.crt",
        )
        (place / f"{name}.key").chmod(0o600)
    return place


@pytest.fixture(scope="module")
def authority(place):
    authority = Authority(place / "jwt.key")
    (place / "keys").write_text(authority.jwks())
    return authority


SHOWN = "certificate = alice.example.org"


def write_identities(place, *lines):
    text = "\n".join(["[alice]", "tenants = a", "roles = factor", *lines, ""])
    (place / "identities.next").write_text(text)
    (place / "identities.next").chmod(0o600)
    (place / "identities.next").rename(place / "identities")


def line_of(token, end=""):
    return f"token = sha256:{hashlib.sha256(token.encode()).hexdigest()}{end}"


ALL_LINES = (SHOWN, line_of(TOKEN), line_of(LATE, " until 2020-01-01T00:00:00Z"), "subject = alice@sso")


@pytest.fixture(scope="module")
def start(program, place, authority, tmp_path_factory):
    """Start a daemon that authenticates callers, with additional `flags`."""
    write_identities(place, *ALL_LINES)
    started = []

    def start(*flags):
        asking = [
            f"--identities={place}/identities",
            f"--token-keys={place}/keys",
            "--token-issuer=sso",
            "--token-audience=crout",
        ]
        started.append(Daemon(program, tmp_path_factory.mktemp("croutd"), *asking, *flags))
        return started[-1]

    yield start
    for daemon in started:
        daemon.stop()


def tls_of(place):
    return (
        f"--tls-cert={place}/server.crt",
        f"--tls-key={place}/server.key",
        f"--tls-client-ca={place}/ca.crt",
    )


@pytest.fixture(scope="module")
def daemons(start, place):
    tls = tls_of(place)
    return {
        "plain": start(),
        "tls": start(*tls, "--tls-client-certs=optional"),
        "mutual": start(*tls, "--tls-client-certs=required"),
    }


def connect(daemon, **options):
    return crout.connect(daemon.address, retry=ONCE, timeout=TIMEOUT, **options)


def test_authenticated_callers_are_served(daemons, place, authority):
    ca = {"tls": True, "ca": place / "ca.crt"}
    shown = {"cert": place / "client.crt", "key": place / "client.key"}
    for server, options in (
        ("plain", {"token": TOKEN}),
        ("plain", {"token": authority.sign()}),
        ("tls", {**ca, "token": TOKEN}),
        ("tls", {**ca, "token": authority.sign()}),
        ("tls", {**ca, **shown}),
        ("mutual", {**ca, **shown}),
        ("mutual", {**ca, **shown, "token": TOKEN}),
    ):
        with connect(daemons[server], **options) as c:
            assert c.solve(2 * np.eye(2), np.ones(2)).tolist() == [0.5] * 2


def test_unauthenticated_callers_get_advice(daemons, authority, place, tmp_path):
    ca = {"tls": True, "ca": place / "ca.crt"}
    for server, options, reason, why in (
        ("plain", {}, "NO_CREDENTIALS", "send a token"),
        ("tls", ca, "NO_CREDENTIALS", "send a token"),
        ("tls", {**ca, "token": "crout_guess"}, "UNKNOWN_TOKEN", "ask the operator"),
        ("tls", {**ca, "token": LATE}, "EXPIRED_TOKEN", "has expired: ask the operator"),
        ("tls", {**ca, "token": authority.sign(seconds=-60)}, "EXPIRED_TOKEN", "has expired"),
        ("tls", {**ca, "token": authority.sign("other")}, "FOREIGN_TOKEN", "request a token for this server"),
        ("tls", {**ca, "token": Authority(tmp_path / "key").sign()}, "UNKNOWN_TOKEN", "ask the operator"),
    ):
        with connect(daemons[server], **options) as c, pytest.raises(crout.NotPermitted, match=why) as caught:
            c.server_info()
        assert (caught.value.code, caught.value.reason) == ("UNAUTHENTICATED", reason)


def test_connection_errors_name_the_cause(daemons, place):
    ca = {"tls": True, "ca": place / "ca.crt"}
    late = {"cert": place / "late.crt", "key": place / "late.key"}
    for server, options, why in (
        ("mutual", {**ca, "token": TOKEN}, "client certificate"),
        ("tls", {**ca, **late}, "client certificate"),
        ("tls", {"tls": True, "ca": place / "other.crt"}, "no trusted authority signed it"),
        ("tls", {**ca, "server_name": "elsewhere.example"}, "server_name="),
        ("tls", {"token": TOKEN}, "give tls=True"),
        ("plain", {**ca, "token": TOKEN}, "does not speak TLS"),
    ):
        with connect(daemons[server], **options) as c, pytest.raises(crout.Unavailable, match=why):
            c.server_info()


@pytest.mark.parametrize(
    ("certificate", "options", "why"),
    [
        ("server", ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], r"TLS 1\.2"),
        ("late", ["-alpn", "h2"], "certificate has expired"),
    ],
)
def test_old_tls_versions_and_expired_certificates_are_rejected(place, certificate, options, why):
    command = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-www", *options]
    command += ["-cert", place / f"{certificate}.crt", "-key", place / f"{certificate}.key"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = next(line.split()[1] for line in server.stdout if line.startswith("ACCEPT"))
            with (
                crout.connect(address, retry=ONCE, timeout=TIMEOUT, tls=True, ca=place / "ca.crt") as c,
                pytest.raises(crout.Unavailable, match=why),
            ):
                c.server_info()
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("shown", "left", "why"),
    [
        ("a token", ALL_LINES[:1], "withdrawn"),
        ("a certificate", ALL_LINES[1:], "no identity has a name of the client's certificate"),
    ],
)
def test_revoked_credentials_are_rejected(start, place, shown, left, why):
    by_token = shown == "a token"
    daemon = start() if by_token else start(*tls_of(place), "--tls-client-certs=required")
    certificate = {"cert": place / "client.crt", "key": place / "client.key"}
    options = {"token": TOKEN} if by_token else {"tls": True, "ca": place / "ca.crt", **certificate}
    with connect(daemon, **options) as c:
        assert c.server_info()
        write_identities(place, *left)
        caught = []

        def refused():
            try:
                c.server_info()
            except crout.NotPermitted as error:
                caught.append(error)
            return bool(caught)

        try:
            assert eventually(refused)
        finally:
            write_identities(place, *ALL_LINES)
    assert why in str(caught[0])
