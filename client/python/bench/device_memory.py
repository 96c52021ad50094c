# SPDX-License-Identifier: Apache-2.0
"""Measures and checks payloads and solutions in GPU memory over a Unix socket.

usage: device_memory.py ADDRESS RESULT.json

ADDRESS is the unix:PATH of a daemon on a machine with a GPU, with --max-shared-memory=4GiB and
--max-shared-device-memory=16GiB or more. The rows are

- "host": arrays from client.empty in host memory
- "through_host": arrays on the GPU, with a client that has no memory of the server
- "copied": arrays on the GPU in memory of this process, as those of CuPy, PyTorch and JAX
- "device": arrays from client.empty on the GPU, which are sent without a copy

"upload" sends 512 MiB. Its rate is the size divided by the time that lu_factor takes beyond the server's time
to factor. "step" is the time of lu_factor, solve with as many right-hand sides as unknowns, and release at
n = 4096, from call to call. "copy" is the time of the client's copy of that matrix on the GPU. Every solution
is checked.

The checks end the program with an exception: requests that violate the protocol, other users of the memory
during a call, and clients that die.
"""

import multiprocessing
import os
import signal
import socket
import statistics
import struct
import sys
import threading
import time

import numpy as np
from result import head, keep

import crout
from crout._cuda import driver
from crout._device import on_host

ORDER = 4096
LARGE = 8192  # 512 MiB of float64
REPEATS = 10
DYING_CLIENTS = 5
GPU = "cuda:0"


def matrix(n):
    return np.asfortranarray(np.random.default_rng(0).standard_normal((n, n)) + n * np.eye(n))


def on_server(client, A, device):
    """Copy a matrix to memory of the server."""
    shared = client.empty(A.shape, A.dtype, "F", device=device)
    if device == "host":
        shared[...] = A
    else:
        shared.set(A)
    return shared


def forms(client, alone, A):
    """Return the name of each row, its client, and the matrix in its form."""
    return [
        ("host", client, on_server(client, A, "host")),
        ("through_host", alone, on_host(A, 0)),
        ("copied", client, on_host(A, 0)),
        ("device", client, on_server(client, A, GPU)),
    ]


def upload(client, A):
    """Return the rate of an upload in GB a second."""
    begin = time.perf_counter()
    f = client.lu_factor(A)
    seconds = time.perf_counter() - begin - f.record.timings["factor"]
    f.release()
    return 1e-9 * A.nbytes / seconds


def step(client, A, B):
    """Factor and solve. Return the seconds and X."""
    begin = time.perf_counter()
    f = client.lu_factor(A)
    x = f.solve(B)
    f.release()
    return time.perf_counter() - begin, x


def check(A, B, x, name):
    """Check a solution, which must be where B is."""
    if isinstance(B, crout.DeviceArray) != isinstance(x, crout.DeviceArray):
        raise AssertionError(f"{name}: X is a {type(x).__name__}")
    error = np.abs(A @ np.asarray(x) - np.asarray(B)).max()
    if not error < 1e-8:
        raise AssertionError(f"{name}: the residual is {error}")


def measure(client, alone):
    rows = {}
    A = matrix(LARGE)
    for name, one, form in forms(client, alone, A):
        upload(one, form)
        rates = [upload(one, form) for _ in range(REPEATS)]
        rows[name] = {"row": name, "upload_gb_per_second": statistics.median(rates)}
        print(rows[name], flush=True)
    del form
    A = matrix(ORDER)
    ones = np.asfortranarray(np.ones((ORDER, ORDER)))
    right = {name: B for name, _, B in forms(client, alone, ones)}
    for name, one, form in forms(client, alone, A):
        step(one, form, right[name])
        seconds = []
        for _ in range(REPEATS):
            taken, x = step(one, form, right[name])
            seconds.append(taken)
        check(A, right[name], x, name)
        rows[name]["step_milliseconds"] = 1e3 * statistics.median(seconds)
        print(rows[name], flush=True)
    rows["copied"]["copy_milliseconds"] = copy_time(client, A)
    return list(rows.values())


def copy_time(client, A):
    source, to = on_host(A, 0), client.empty(A.shape, A.dtype, "F", device=GPU)
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        to.set(source)
        seconds.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(seconds)


def request(address, message, files=()):
    """Send a message to the memory socket, and return the answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(30)
        connection.connect(address.removeprefix("unix:") + ".memory")
        socket.send_fds(connection, [message], list(files))
        answer, received, _, _ = socket.recv_fds(connection, 4096, 4)
        for file in received:
            os.close(file)
        return answer


def check_refusals(address):
    """Violate the protocol and the limits."""
    uuid = driver().uuid_of(0)
    unit = 2 << 20
    for message, files, reason in [
        (b"CROUTG1\0" + struct.pack("<Q", unit) + bytes(16), (), "does not use GPU-"),
        (b"CROUTG1\0" + struct.pack("<Q", 0) + uuid, (), "--max-shared-device-memory"),
        (b"CROUTG1\0" + struct.pack("<Q", 1 << 60) + uuid, (), "--max-shared-device-memory"),
        (b"CROUTG1\0" + struct.pack("<Q", unit) + uuid, (0,), "Send exactly none"),
        (b"CROUTG1\0" + struct.pack("<Q", unit) + uuid[:8], (), "the offer is not"),
    ]:
        answer = request(address, message, files)
        if answer[:1] != b"\1" or reason not in answer[1:].decode():
            raise AssertionError(f"{reason}: the answer is {answer!r}")
    answer = request(address, b"CROUTG1\0" + struct.pack("<Q", 1) + uuid)
    if answer[:1] != b"\0" or struct.unpack("<Q", answer[17:])[0] != unit:
        raise AssertionError(f"the answer is {answer!r}")


def check_cleared(address):
    """Memory of the server has no data of earlier regions."""
    with crout.connect(address) as client:
        client.empty(1 << 21, device=GPU).set(np.full(1 << 21, 7.0))
    with crout.connect(address) as client:
        if np.any(client.empty(1 << 22, device=GPU).get()):
            raise AssertionError("memory of the server has data of others")


def check_rewriting(client, A):
    """Write to the matrix during calls: each ends with a result or an error."""
    shared = on_server(client, A, GPU)
    bad = on_host(np.full_like(A, np.nan), 0)
    good = on_host(A, 0)
    stop = threading.Event()

    def rewrite():
        while not stop.is_set():
            shared.set(bad)
            shared.set(good)

    writer = threading.Thread(target=rewrite)
    writer.start()
    outcomes = {"factors": 0, "errors": 0}
    for _ in range(3 * REPEATS):
        try:
            client.lu_factor(shared).release()
            outcomes["factors"] += 1
        except crout.InvalidRequest:  # NaN
            outcomes["errors"] += 1
    stop.set()
    writer.join()
    shared.set(good)
    print("rewritten during the call:", outcomes, flush=True)


def dying_client(address, ready):
    client = crout.connect(address)
    A = on_server(client, matrix(ORDER), GPU)
    client.lu_factor(A).release()
    ready.set()
    while True:
        client.lu_factor(A).release()


def check_dying_clients(address):
    """Kill clients that factor matrices in GPU memory."""
    spawn = multiprocessing.get_context("spawn")
    for _ in range(DYING_CLIENTS):
        ready = spawn.Event()
        one = spawn.Process(target=dying_client, args=(address, ready))
        one.start()
        if not ready.wait(120):
            raise AssertionError("a client does not start")
        os.kill(one.pid, signal.SIGKILL)
        one.join()
        one.close()


def check_placement(client, A):
    """On several GPUs, a job runs where its matrix is, and a named device gets a copy through the host."""
    gpus = [one.name for one in client.server_info().devices if one.name.startswith("cuda")]
    if len(gpus) < 2:
        return
    for k in range(2):
        shared = on_server(client, A, f"cuda:{k}")
        f = client.lu_factor(shared)
        if f.record.device != f"cuda:{k}":  # the numbers agree if both see all GPUs
            raise AssertionError(f"the matrix on cuda:{k} was factored on {f.record.device}")
        other = client.lu_factor(shared, device=f"cuda:{1 - k}")
        B = on_host(np.ones((ORDER, 256)), k)
        check(A, B, f.solve(B), "same GPU")
        check(A, B, other.solve(B), "another GPU")
        f.release()
        other.release()
    print("placement: right on", gpus[:2], flush=True)


def main(address, path):
    with crout.connect(address) as client, crout.connect(address) as alone:
        alone._transport.memory.close()
        result = head("device_memory", client)
        A = matrix(ORDER)
        check_refusals(address)
        check_cleared(address)
        check_rewriting(client, A)
        check_dying_clients(address)
        check_placement(client, A)
        result["device_memory"] = measure(client, alone)
        health = [one for one in client.server_info().devices if not one.healthy]
        if health:
            raise AssertionError(f"devices are lost: {health}")
    keep(result, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
