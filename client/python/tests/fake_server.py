# SPDX-License-Identifier: Apache-2.0
"""A server with scripted replies."""

import threading
from concurrent import futures

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration


class FakeServer(grpc.GenericRpcHandler):
    """Answers calls in sequence with `replies`.

    Each reply is a list of messages, a status or a `WithTrailers`.

    Attributes
    ----------
    address : str
    requests : list of list of bytes
        The received messages, call by call.
    metadata : list of dict
        The received metadata, call by call.
    """

    def __init__(self, *replies, pings=False):
        self._replies = list(replies)
        self._lock = threading.Lock()
        self.requests = []
        self.metadata = []
        # With `pings`, the server accepts any number of pings.
        options = [("grpc.http2.max_ping_strikes", 0)] if pings else []
        self._server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[self], options=options)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._server.stop(None).wait()

    def service(self, details):
        return grpc.stream_stream_rpc_method_handler(self._answer)

    def _answer(self, requests, context):
        received = list(requests)
        with self._lock:
            self.requests.append(received)
            self.metadata.append(dict(context.invocation_metadata()))
            reply = self._replies.pop(0)
        if isinstance(reply, WithTrailers):
            context.set_trailing_metadata(reply.trailers)
            reply = reply.messages
        if isinstance(reply, Status):
            reply.end(context)
        yield from reply


class Silence:
    """A reply that is not sent before `released` is set; `requested` is set when a call waits for it."""

    def __init__(self):
        self.requested = threading.Event()
        self.released = threading.Event()

    def __iter__(self):
        self.requested.set()
        self.released.wait()
        return iter([])


class WithTrailers:
    """A list of messages, and trailing metadata."""

    def __init__(self, messages, *trailers):
        self.messages, self.trailers = messages, trailers


class Status:
    """A status, with its details and other trailing metadata."""

    def __init__(self, code, message="no", *trailers, details=b""):
        self._code, self._message = code, message
        self._trailers = [("grpc-status-details-bin", details), *trailers]

    def end(self, context):
        context.set_trailing_metadata(self._trailers)
        context.abort(self._code, self._message)


def field(number, value):
    """Encode a length-delimited field of at most 16 KiB."""
    value = value.encode() if isinstance(value, str) else value
    size = len(value)
    length = bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])
    return bytes([number << 3 | 2]) + length + value


def status_details(reason, metadata=None, delay=None, bad_field=None):
    """Encode a google.rpc.Status with Crout's details."""
    entries = b"".join(field(3, field(1, key) + field(2, value)) for key, value in (metadata or {}).items())
    parts = [("ErrorInfo", field(1, reason) + field(2, "crout") + entries)]
    if delay is not None:
        duration = Duration(seconds=int(delay), nanos=round(delay % 1 * 1e9))
        parts.append(("RetryInfo", field(1, duration.SerializeToString())))
    if bad_field is not None:
        parts.append(("BadRequest", field(1, field(1, bad_field))))
    return b"".join(
        field(3, Any(type_url=f"type.googleapis.com/google.rpc.{name}", value=value).SerializeToString())
        for name, value in parts
    )
