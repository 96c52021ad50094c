#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the includes of the layers. kernels/ and server/engine/ use neither gRPC, protobuf nor prometheus-cpp.
kernels/ uses no other part of the product, and server/engine/ uses only kernels/. The public headers of the C++ client
use none of these either, and name no message of the contract.

usage: layers_test.py
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# (layer, folders of the product whose headers it may include)
LAYERS = [("kernels", ("kernels/",)), ("server/engine", ("kernels/", "server/engine/"))]
OWN = re.compile(r"(kernels|server|client|proto|tests)/")
TRANSPORT = re.compile(r"(grpc|grpcpp|google/protobuf|prometheus|crout/v1)/|.*\.pb\.h$")


def forbidden(include, allowed):
    """Returns whether the header `include` is forbidden in a layer that may include the folders `allowed`."""
    if TRANSPORT.match(include):
        return True
    return bool(OWN.match(include)) and not include.startswith(allowed)


class LayersTest(unittest.TestCase):
    def test_layers_include_only_what_is_below_them(self):
        for layer, allowed in LAYERS:
            files = [path for path in (ROOT / layer).rglob("*") if path.suffix in (".h", ".cc", ".cu", ".cuh")]
            self.assertTrue(files, layer)
            for path in files:
                for include in re.findall(r'^#include ["<]([^">]+)', path.read_text(encoding="utf-8"), re.MULTILINE):
                    self.assertFalse(forbidden(include, allowed), f"{path.relative_to(ROOT)} includes {include}")

    def test_public_headers_of_the_client_hide_the_transport(self):
        headers = list((ROOT / "client/cpp/crout").glob("*.h"))
        self.assertTrue(headers)
        for path in headers:
            text = path.read_text(encoding="utf-8")
            for include in re.findall(r'^#include ["<]([^">]+)', text, re.MULTILINE):
                self.assertFalse(forbidden(include, ()), f"{path.relative_to(ROOT)} includes {include}")
            code = re.sub(r"//.*", "", text)
            self.assertNotRegex(code, r"\b(v1|grpc|google|protobuf)::", path.relative_to(ROOT))

    def test_forbidden_includes_are_found(self):
        allowed = LAYERS[1][1]
        for include in ("grpcpp/server.h", "google/protobuf/message.h", "crout/v1/factor.pb.h", "server/rpc/core.h"):
            self.assertTrue(forbidden(include, allowed), include)
        for include in ("absl/status/status.h", "kernels/device.h", "server/engine/reason.h", "vector"):
            self.assertFalse(forbidden(include, allowed), include)


if __name__ == "__main__":
    unittest.main()
