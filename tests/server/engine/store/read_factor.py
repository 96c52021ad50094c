#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a dense factor in float64 from a safetensors file, without Crout, and checks P A = L U."""

import json
import struct
import sys

import numpy as np

TYPES = {"U8": np.uint8, "I32": np.int32, "I64": np.int64, "F32": np.float32, "F64": np.float64}


def read(path):
    """Returns the tensors and the texts of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    texts = header.pop("__metadata__")
    tensors = {}
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        values = np.frombuffer(data[8 + length + begin : 8 + length + end], TYPES[tensor["dtype"]])
        tensors[name] = values.reshape(tensor["shape"])
    return tensors, texts


def main():
    tensors, texts = read(sys.argv[1])
    summary = json.loads(texts["summary"])
    n = summary["n"]
    # Crout stores columns; safetensors has rows.
    lu, a, scales = tensors["lu"].T, tensors["matrix"].T, tensors["scales"]
    assert lu.shape == (n, n) and texts["tenant"] == "alice"
    lower = np.tril(lu, -1) + np.eye(n)
    scaled = scales[:n, None] * a * scales[None, n:]
    for k, pivot in enumerate(tensors["ipiv"] - 1):
        scaled[[k, pivot]] = scaled[[pivot, k]]
    error = np.abs(scaled - lower @ np.triu(lu)).max()
    assert error < 1e-12, error


main()
