#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program with an S3 server (moto), which checks the signatures of all requests.

usage: s3_server.py PROGRAM [ARGUMENT...]

Sets CROUT_S3_ENDPOINT, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the program, and creates the bucket "factors"
with 1005 objects below "list/". Exits with the code of the program. Needs the packages of requirements.txt.
"""

import json
import logging
import os
import subprocess
import sys

import boto3
from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
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
    code = subprocess.run(sys.argv[1:], check=False, env=os.environ | {
        "CROUT_S3_ENDPOINT": endpoint, "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"]}).returncode
    server.stop()
    return code


if __name__ == "__main__":
    sys.exit(main())
