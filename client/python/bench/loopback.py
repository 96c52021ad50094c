# SPDX-License-Identifier: Apache-2.0
"""Measures calls from Python and from the C++ client against the same daemon.

usage: loopback.py CROUTCTL [ADDRESS] > result.json

Prints a table to standard error, and one JSON object with the device, the commit and the date.

The results are medians of wall-clock time over alternating rounds. "C++" is `croutctl bench`. The rows below
a solve send the same bytes by gRPC alone: as a stream, as one message with a streamed reply (as the client
does), and as one message with one reply, which works because this reply is a single message. The last rows
are such calls to a trivial Python server, which returns the bytes that it receives.
"""

import json
import statistics
import subprocess
import sys
import time
from concurrent import futures

import grpc
import numpy as np
from result import head

import crout
from crout import _requests
from crout._memory import Loan
from crout._transport import CHANNEL_OPTIONS, SERVICE

ORDERS = [1, 16, 64, 256]
CALLS = 300
FACTORIZATIONS = 10
ROUNDS = 5
SINGLE_THREADED = ("SingleThreadedUnaryStream", 1)


def median(function, calls, after=None):
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - begin)
        if after is not None:
            after(result)
    return statistics.median(times)


def cpp(croutctl, address, mode, n, calls):
    """Return the C++ client's median."""
    command = [croutctl, f"--server={address}", "bench", "--json", f"--mode={mode}", f"--n={n}", "--nrhs=1"]
    command += ["--concurrency=1", f"--requests={calls}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output)["results"][0]["p50_seconds"]


def take_turns(title, runs):
    """Measure the runs in alternating rounds. Print medians and fastest rounds, relative to the first run.

    Returns the medians in microseconds, by the names of the runs.
    """
    medians = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            medians[name].append(run())
    print(title, file=sys.stderr)
    first = next(iter(medians.values()))
    for name, values in medians.items():
        line = f"  {name:34}"
        for kind in (statistics.median, min):
            seconds, reference = kind(values), kind(first)
            more = (seconds - reference) * 1e6
            line += f"{seconds * 1e6:8.0f} us {more:+7.0f} us x {seconds / reference:4.2f}   "
        print(line.rstrip(), file=sys.stderr)
    return {name: statistics.median(values) * 1e6 for name, values in medians.items()}


def factorizations(client, croutctl, address):
    rows = []
    for n in (100, 1000):
        A = np.random.default_rng(0).standard_normal((n, n)) + n * np.eye(n)
        runs = {
            "C++": lambda n=n: cpp(croutctl, address, "factor", n, FACTORIZATIONS),
            "Python": lambda A=A: median(lambda: client.lu_factor(A), FACTORIZATIONS, client.release),
        }
        found = take_turns(f"lu_factor, n = {n}", runs)
        row = {"n": n, "rounds": ROUNDS, "cpp_us": found["C++"], "python_us": found["Python"]}
        rows.append({**row, "ratio": found["Python"] / found["C++"]})
    return rows


def bare_calls(channel, method, message):
    """Return calls that send the bytes by gRPC alone."""
    stream = channel.stream_stream(SERVICE + method)
    one = channel.unary_stream(SERVICE + method)
    unary = channel.unary_unary(SERVICE + method)
    return {
        "gRPC: a stream": lambda: median(lambda: list(stream(iter([message]))), CALLS),
        "gRPC: one message, streamed reply": lambda: median(lambda: list(one(message)), CALLS),
        "gRPC: one message for one": lambda: median(lambda: unary(message), CALLS),
    }


def solves(client, croutctl, address):
    channel = grpc.insecure_channel(address, options=[*CHANNEL_OPTIONS, SINGLE_THREADED])
    rows = []
    for n in ORDERS:
        A, b = np.random.default_rng(0).standard_normal((n, n)) + n * np.eye(n), np.ones(n)
        f = client.lu_factor(A)
        [(message, _)] = _requests.solve(f.record, b).messages(Loan())
        runs = {
            "C++": lambda n=n: cpp(croutctl, address, "solve", n, CALLS),
            "Python": lambda f=f, b=b: median(lambda: f.solve(b), CALLS),
            **bare_calls(channel, "Solve", message),
        }
        found = take_turns(f"solve, n = {n}", runs)
        f.release()
        cpp_us, python_us, *grpc_us = found.values()
        row = {
            "n": n,
            "rounds": ROUNDS,
            "cpp_us": cpp_us,
            "python_us": python_us,
            "extra_us": python_us - cpp_us,
        }
        rows.append({**row, "grpc_stream_us": grpc_us[0], "grpc_one_message_us": grpc_us[1]})
    channel.close()
    return rows


class Nothing(grpc.GenericRpcHandler):
    """Returns the received bytes."""

    def service(self, details):
        if details.method.endswith("Stream"):
            return grpc.unary_stream_rpc_method_handler(lambda request, context: iter([request]))
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)


def trivial_server():
    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Nothing()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[SINGLE_THREADED])
    unary, stream = channel.unary_unary("/x/Unary"), channel.unary_stream("/x/Stream")
    runs = {
        "one message for one": lambda: median(lambda: unary(b"x" * 300), CALLS),
        "one message, streamed reply": lambda: median(lambda: list(stream(b"x" * 300)), CALLS),
    }
    take_turns("a Python server that does nothing", runs)
    server.stop(None).wait()


def main(croutctl, address="127.0.0.1:50051"):
    versions = f"crout {crout.__version__}, grpcio {grpc.__version__}, NumPy {np.__version__}"
    print(versions, file=sys.stderr)
    with crout.connect(address) as client:
        result = {
            **head("python", client),
            "client": versions,
            "python_factor": factorizations(client, croutctl, address),
            "python_solve": solves(client, croutctl, address),
        }
    trivial_server()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
