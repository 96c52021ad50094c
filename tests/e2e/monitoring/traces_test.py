#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the spans that an OTLP/HTTP receiver gets from a real daemon, and receivers that accept none.

usage: traces_test.py CROUTD CROUTCTL
"""

import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

from prometheus_server import free_port

TIMEOUT = 120  # seconds
TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CROUTD = CROUTCTL = None


class Receiver(http.server.ThreadingHTTPServer):
    """A receiver that accepts spans, or that replies with another status."""

    def __init__(self, status=200):
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                requests.append((handler.path, handler.headers["Content-Type"], json.loads(body)))
                handler.send_response(status)
                handler.send_header("Content-Length", "2")
                handler.end_headers()
                handler.wfile.write(b"{}")

            def log_message(handler, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    def stop(self):
        self.shutdown()
        self._thread.join()
        self.server_close()

    def spans(self):
        return [span for _, _, request in self.requests for resource in request["resourceSpans"]
                for scope in resource["scopeSpans"] for span in scope["spans"]]


class TracesTest(unittest.TestCase):
    def start(self, endpoint):
        self._daemon = subprocess.Popen(
            [CROUTD, "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--devices=host",
             "--drain-grace=0s", f"--otlp-endpoint={endpoint}"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self._daemon.stdout.close)
        self.addCleanup(self.stop)
        self._listen, self._metrics = re.match(
            r"croutd ready listen=(\S+) metrics=(\S+)", self._daemon.stdout.readline()).groups()

    def stop(self):
        """Stops the daemon. Returns the seconds that this took."""
        begin = time.monotonic()
        if self._daemon.poll() is None:
            self._daemon.send_signal(signal.SIGTERM)
            self.assertEqual(self._daemon.wait(TIMEOUT), 0)
        return time.monotonic() - begin

    def factor(self, flags=None):
        trace = [] if flags is None else [f"--traceparent=00-{TRACE_ID}-{PARENT_ID}-{flags}"]
        subprocess.run([CROUTCTL, f"--server={self._listen}", *trace, "factor", "-"],
                       input="4 1\n1 4\n", text=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT,
                       check=True)

    def counters(self):
        with urllib.request.urlopen(f"http://{self._metrics}/metrics", timeout=TIMEOUT) as reply:
            text = reply.read().decode()
        return tuple(int(float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.M).group(1)))
                     for name in ("crout_traces_exported_total",
                                  'crout_traces_dropped_total{reason="send_failed"}',
                                  'crout_traces_dropped_total{reason="queue_full"}'))

    def wait(self, condition, what):
        end = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def test_a_sampled_call_and_its_phases(self):
        receiver = Receiver()
        self.addCleanup(receiver.stop)
        self.start(f"http://127.0.0.1:{receiver.server_port}/otlp/")
        self.factor()  # is part of no trace
        self.factor("00")  # is part of a trace that the caller does not record
        self.factor("01")
        self.wait(lambda: self.counters()[0] == 1, "an exported call")
        self.assertEqual({request[:2] for request in receiver.requests},
                         {("/otlp/v1/traces", "application/json")})
        call, *phases = receiver.spans()
        self.assertEqual(call["name"], "crout.v1.FactorizationService/Factorize")
        self.assertEqual((call["traceId"], call["parentSpanId"]), (TRACE_ID, PARENT_ID))
        self.assertIn("factor", {phase["name"] for phase in phases})
        self.assertEqual({phase["parentSpanId"] for phase in phases}, {call["spanId"]})
        for phase in phases:
            self.assertLessEqual(int(call["startTimeUnixNano"]), int(phase["startTimeUnixNano"]))
            self.assertLessEqual(int(phase["endTimeUnixNano"]), int(call["endTimeUnixNano"]))
        self.assertLess(abs(int(call["endTimeUnixNano"]) * 1e-9 - time.time()), TIMEOUT)
        attributes = {entry["key"]: entry["value"] for entry in call["attributes"]}
        self.assertEqual(attributes["crout.n"], {"intValue": "2"})

    def test_a_call_that_waits_goes_before_the_daemon_does(self):
        receiver = Receiver()
        self.addCleanup(receiver.stop)
        self.start(f"http://127.0.0.1:{receiver.server_port}")
        self.factor("01")
        self.stop()
        self.wait(receiver.spans, "its spans")

    def test_a_receiver_that_refuses(self):
        receiver = Receiver(status=503)
        self.addCleanup(receiver.stop)
        self.start(f"http://127.0.0.1:{receiver.server_port}")
        self.factor("01")
        self.wait(lambda: self.counters() == (0, 1, 0), "a dropped call")
        self.factor("01")  # is served

    def test_a_receiver_that_is_not_there(self):
        self.start(f"http://127.0.0.1:{free_port()}")
        self.factor("01")
        self.wait(lambda: self.counters() == (0, 1, 0), "a dropped call")

    def test_a_receiver_that_is_silent(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.start(f"http://127.0.0.1:{silent.getsockname()[1]}")
            self.factor("01")
            with silent.accept()[0]:  # the request has arrived
                self.factor("01")
                self.assertEqual(self.counters()[0], 0)
                self.assertLess(self.stop(), TIMEOUT / 2)

    def test_a_receiver_that_is_slow(self):
        """Tests a receiver that sends two bytes per second: the whole request has a time limit."""
        with socket.create_server(("127.0.0.1", 0)) as slow:
            self.start(f"http://127.0.0.1:{slow.getsockname()[1]}")
            self.factor("01")
            with slow.accept()[0] as connection:
                over = threading.Event()

                def trickle():
                    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".ljust(1000):
                        try:
                            connection.sendall(bytes([byte]))
                        except OSError:
                            return
                        if over.wait(0.5):
                            return

                trickling = threading.Thread(target=trickle)
                trickling.start()
                try:
                    self.wait(lambda: self.counters() == (0, 1, 0), "a dropped call")
                finally:
                    over.set()
                    trickling.join()


if __name__ == "__main__":
    CROUTD, CROUTCTL = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
