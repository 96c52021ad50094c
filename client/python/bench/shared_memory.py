# SPDX-License-Identifier: Apache-2.0
"""Measures uploads and factorizations over a Unix socket, with and without shared memory.

usage: shared_memory.py ADDRESS RESULT.json

ADDRESS is the unix:PATH of a daemon with --max-shared-memory=4GiB or more. The rows are

- "messages": matrices in messages of gRPC
- "copied": arrays of NumPy, which the client copies to shared memory
- "shared": arrays from client.empty, which are sent without a copy
- "cudaMemcpy": a copy from page-locked memory without Crout, if the machine has libcudart

"upload" sends 512 MiB. Its rate is the size divided by the server's time to receive the matrix and to copy it
to the device. "factorizations" is the rate of one client at n = 4096, from call to call. "shared_clients" has
the rate of eight processes together, with arrays from client.empty, and the median utilization of the GPU
meanwhile, if the machine has nvidia-smi.
"""

import ctypes
import ctypes.util
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np
from result import head, keep

import crout

ORDER = 4096
LARGE = 8192  # 512 MiB of float64
UPLOADS = 5
FACTORIZATIONS = 50
CLIENTS = 8


def matrices(client, n):
    """Return the name of each row, its client and its matrix."""
    A = np.asfortranarray(np.random.default_rng(0).standard_normal((n, n)) + n * np.eye(n))
    shared = client.empty((n, n), order="F")
    shared[...] = A
    by_messages = crout.connect(client.address)
    by_messages._transport.memory.close()  # sends messages from now on
    return [("messages", by_messages, A), ("copied", client, A), ("shared", client, shared)]


def upload(client, A):
    """Return the rate of an upload in GB a second."""
    f = client.lu_factor(A)
    timings = f.record.timings
    f.release()
    return 1e-9 * A.nbytes / (timings["receive"] + timings.get("host_to_device", 0.0))


def factorizations(client, A):
    """Return the number of factorizations a second."""
    begin = time.perf_counter()
    for _ in range(FACTORIZATIONS):
        client.lu_factor(A).release()
    return FACTORIZATIONS / (time.perf_counter() - begin)


def worker(address, started, ended):
    """Factor a matrix of this process in shared memory."""
    with crout.connect(address) as client:
        A = matrices(client, ORDER)[-1][2]
        factorizations(client, A)  # pages are registered, and pools have their blocks
        started.wait()
        factorizations(client, A)
        ended.wait()


def utilization():
    """Return the utilization of the first GPU in percent; None without nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--id=0", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    return float(subprocess.run(query, check=True, capture_output=True, text=True).stdout)


def concurrent_factorizations(address):
    """Return the rate of CLIENTS processes together, and the median utilization of the GPU."""
    spawn = multiprocessing.get_context("spawn")
    started, ended = (spawn.Barrier(CLIENTS + 1, timeout=300) for _ in range(2))
    workers = [spawn.Process(target=worker, args=(address, started, ended)) for _ in range(CLIENTS)]
    for one in workers:
        one.start()
    started.wait()
    begin = time.perf_counter()
    samples = []
    while ended.n_waiting < CLIENTS and all(one.is_alive() for one in workers):
        samples.append(utilization())
        time.sleep(0.1)
    seconds = time.perf_counter() - begin
    ended.wait()
    for one in workers:
        one.join()
        if one.exitcode != 0:
            raise RuntimeError(f"a client ended with exit code {one.exitcode}")
    known = [sample for sample in samples if sample is not None]
    return CLIENTS * FACTORIZATIONS / seconds, statistics.median(known) if known else None


def pinned(size):
    """Return the rate of a copy from page-locked memory in GB a second; None without libcudart."""
    name = ctypes.util.find_library("cudart")
    if name is None:
        return None
    cuda = ctypes.CDLL(name)
    host, device = ctypes.c_void_p(), ctypes.c_void_p()
    size_t = ctypes.c_size_t
    if cuda.cudaHostAlloc(ctypes.byref(host), size_t(size), 0) or cuda.cudaMalloc(
        ctypes.byref(device), size_t(size)
    ):
        return None
    rates = []
    for _ in range(UPLOADS):
        begin = time.perf_counter()
        if cuda.cudaMemcpy(device, host, size_t(size), 1) or cuda.cudaDeviceSynchronize():
            return None
        rates.append(1e-9 * size / (time.perf_counter() - begin))
    cuda.cudaFree(device)
    cuda.cudaFreeHost(host)
    return statistics.median(rates)


def main(address, path):
    with crout.connect(address) as client:
        result = head("shared_memory", client)
        rows = {name: {"row": name} for name in ("messages", "copied", "shared")}
        for name, one, A in matrices(client, LARGE):
            upload(one, A)
            rates = [upload(one, A) for _ in range(UPLOADS)]
            rows[name]["upload_gb_per_second"] = statistics.median(rates)
        for name, one, A in matrices(client, ORDER):
            factorizations(one, A)
            rows[name]["factorizations_per_second"] = factorizations(one, A)
        copy = {"row": "cudaMemcpy", "upload_gb_per_second": pinned(8 * LARGE**2)}
        result["shared_memory"] = [*rows.values(), copy]
    rate, busy = concurrent_factorizations(address)
    result["shared_clients"] = [
        {"clients": CLIENTS, "factorizations_per_second": rate, "gpu_utilization_percent": busy}
    ]
    for row in result["shared_memory"] + result["shared_clients"]:
        print(row)
    keep(result, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
