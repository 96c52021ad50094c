#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program with an S3 server (moto), which checks the signatures of all requests.

usage: s3_server.py PROGRAM [ARGUMENT...]

Sets AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the program, and

  CROUT_S3_ENDPOINT      the address of the server
  CROUT_S3_TLS_PORT      its port for TLS on the loopback address; the name in its certificate is localhost
  CROUT_S3_CERTIFICATE   the file of this certificate

Creates the bucket "factors" with 1005 objects below "list/". Exits with the code of the program. Needs openssl and the
packages of requirements.txt.
"""

import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading

import boto3
from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


class OneAtATime:
    """The application of moto, which runs one request at a time: its conditional writes and lists are not atomic."""

    _lock = threading.Lock()  # one for all servers, which share the objects

    def __init__(self):
        self._application = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ, start_response):
        # A client may be paused while it sends.
        size = None if environ.get("wsgi.input_terminated") else int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(size))
        with self._lock:
            return list(self._application(environ, start_response))


def serve(ssl_context=None):
    """Starts a server of the process's objects, and returns its port."""
    server = make_server("127.0.0.1", 0, OneAtATime(), threaded=True, ssl_context=ssl_context)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.port


def make_certificate(directory):
    """Returns the files of a certificate for localhost and of its key."""
    files = (f"{directory}/certificate.pem", f"{directory}/key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                    "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-out", files[0],
                    "-keyout", files[1]], check=True, capture_output=True)
    return files


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    endpoint = f"http://127.0.0.1:{serve()}"
    # The server accepts any keys until it checks signatures.
    session = boto3.Session("any", "any", region_name="us-east-1")
    iam = session.client("iam", endpoint_url=endpoint)
    iam.create_user(UserName="crout")
    iam.put_user_policy(UserName="crout", PolicyName="all", PolicyDocument=json.dumps(POLICY))
    keys = iam.create_access_key(UserName="crout")["AccessKey"]
    session.client("s3", endpoint_url=endpoint).create_bucket(Bucket="factors")
    for i in range(1005):  # without 1005 requests
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object("factors", f"list/{i}", b"x")
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0.0
    with tempfile.TemporaryDirectory() as directory:
        certificate = make_certificate(directory)
        return subprocess.run(sys.argv[1:], check=False, env=os.environ | {
            "CROUT_S3_ENDPOINT": endpoint, "CROUT_S3_TLS_PORT": str(serve(certificate)),
            "CROUT_S3_CERTIFICATE": certificate[0], "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"]}).returncode


if __name__ == "__main__":
    sys.exit(main())
