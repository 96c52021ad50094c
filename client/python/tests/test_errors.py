# SPDX-License-Identifier: Apache-2.0
"""Statuses, retries, and replies that violate the protocol."""

import asyncio
import math
import pickle
import re
import time
import types

import grpc
import numpy as np
import pytest
from fake_server import FakeServer, Status, status_details

import crout
import crout.aio
from crout import _diagnostics
from crout._call import Attempts, RetryClass
from crout._diagnostics import error_from
from crout.v1 import factor_pb2, matrix_pb2
from crout.v1 import factorization_service_pb2 as service

QUICK = crout.RetryPolicy(initial_backoff=1e-3, max_backoff=1e-3)
FULL = Status(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    "the queue is full",
    details=status_details("QUEUE_FULL", {"device": "host"}, delay=0.02),
)
LOST = Status(grpc.StatusCode.UNAVAILABLE, "lost")


def factor(n=2, **fields):
    return factor_pb2.Factor(
        handle="h", version=1, n=n, factor_dtype=2, matrix_dtype=2, unit_diagonal=1, **fields
    )


def made(**fields):
    return [service.FactorizeResponse(factor=factor(**fields)).SerializeToString()]


def connect(server, retry=QUICK):
    return crout.connect(server.address, timeout=30, retry=retry)


@pytest.mark.parametrize(
    ("code", "reason", "delay", "kind"),
    [
        ("INVALID_ARGUMENT", "INVALID_ARGUMENT", None, crout.InvalidRequest),
        ("FAILED_PRECONDITION", "SINGULAR_MATRIX", None, crout.Singular),
        ("FAILED_PRECONDITION", "SHAPE_MISMATCH", None, crout.InvalidRequest),
        ("NOT_FOUND", "HANDLE_EVICTED", None, crout.HandleExpired),
        ("RESOURCE_EXHAUSTED", "QUEUE_FULL", 1.5, crout.Overloaded),
        ("RESOURCE_EXHAUSTED", "MEMORY_EXHAUSTED", None, crout.Overloaded),
        ("ABORTED", "REQUEST_IN_PROGRESS", 0.25, crout.Overloaded),
        ("ABORTED", "ABORTED", None, crout.NotConverged),
        ("UNAVAILABLE", "DRAINING", None, crout.Unavailable),
        ("DEADLINE_EXCEEDED", "UPLOAD_SLOW", None, crout.DeadlineExceeded),
        ("CANCELLED", "CANCELLED", None, crout.Cancelled),
        ("UNIMPLEMENTED", "UNIMPLEMENTED", None, crout.NotSupported),
        ("DATA_LOSS", "DATA_LOSS", None, crout.CroutError),
    ],
)
def test_statuses(code, reason, delay, kind):
    packed = status_details(reason, {"limit": "7"}, delay, bad_field="header.handle")
    error = error_from(code, "what happened", [("grpc-status-details-bin", packed)], "here:1")
    assert type(error) is kind
    assert (error.code, error.reason, error.retry_delay) == (code, reason, delay)
    assert error.details == {"limit": "7", "field": "header.handle"}
    assert str(error).startswith("what happened")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.reason, copy.retry_delay) == (kind, str(error), reason, delay)


RESETS = [
    ("CANCELLED", "CANCELLED"),  # by a server that stops
    ("CANCELLED", "Received RST_STREAM with error code 8"),
    ("INTERNAL", "Received RST_STREAM with error code 2"),
    ("UNKNOWN", "Stream removed"),
]


@pytest.mark.parametrize(("code", "message"), RESETS)
@pytest.mark.parametrize("packed", [b"", b"\x08", b"\x08\x7f", b"\x08\x05\x12\x02\xff\xff", b"\x12\x01x"])
def test_a_stream_that_the_peer_reset_is_unavailable(code, message, packed):
    error = error_from(code, message, [("grpc-status-details-bin", packed)], "here:1")
    assert type(error) is crout.Unavailable
    assert error.code == "UNAVAILABLE"


@pytest.mark.parametrize(("code", "message"), RESETS)
def test_the_status_of_the_server_precedes_a_reset(code, message):
    packed = b"\x08\x05\x12\x04gone" + status_details("HANDLE_UNKNOWN")
    error = error_from(code, message, [("grpc-status-details-bin", packed)], "here:1")
    assert type(error) is crout.HandleExpired
    assert (error.code, error.reason) == ("NOT_FOUND", "HANDLE_UNKNOWN")
    assert str(error).startswith("gone. ")


def test_a_call_that_a_stopping_server_cancels_is_repeated():
    cancelled = Status(grpc.StatusCode.CANCELLED, "CANCELLED")
    described = [service.DescribeFactorResponse(factor=factor()).SerializeToString()]
    with FakeServer(cancelled, described) as server, connect(server) as c:
        assert c.describe("h").handle == "h"


@pytest.mark.parametrize("packed", [b"\xff", b"\x1a\x7f", b"\x1a\x02\x0a\x00", bytes(range(256))])
def test_details_that_cannot_be_read_do_not_hide_the_status(packed):
    error = error_from("NOT_FOUND", "gone", [("grpc-status-details-bin", packed)], "here:1")
    assert type(error) is crout.HandleExpired


@pytest.mark.parametrize(
    ("text", "in_python"),
    [
        ("header.options.precision: leave factor_dtype out", "precision=: leave dtype= out"),
        ("header.options.keep_matrix: needs A", "keep_matrix=: needs A"),
        ("header.solve.max_refinement_steps: 101 is not", "refine=: 101 is not"),
        ("header.options.parameters.threshold: 2 is not", "parameters= 'threshold': 2 is not"),
        ("header.matrix.dense.rows: 3 x 4", "A: 3 x 4"),
        ("header.matrix: 3 x 4", "A: 3 x 4"),
        ("header.rhs: 3 rows", "b: 3 rows"),
        ("header.x0.dense: no start", "x0: no start"),
        ("header.change.values: 3 values", "the change: 3 values"),
        ("header.cache.lease: 3 s", "lease=: 3 s"),
        ("header.solve.solver_tolerance: 2 is not", "tolerance=: 2 is not"),
        ("leave solver_tolerance and keep_matrix out", "leave tolerance= and keep_matrix= out"),
        ("a header of 5 bytes", "a header of 5 bytes"),
    ],
)
def test_messages_name_keywords_and_no_fields_of_the_contract(text, in_python):
    packed = status_details("INVALID_ARGUMENT", bad_field=text.partition(":")[0])
    error = error_from("INVALID_ARGUMENT", text, [("grpc-status-details-bin", packed)], "here:1")
    assert str(error) == in_python
    assert error.details["field"] == text.partition(":")[0]


@pytest.mark.parametrize(
    ("code", "reason", "step"),
    [
        ("NOT_FOUND", "HANDLE_EXPIRED", "renews the lease"),
        ("NOT_FOUND", "HANDLE_RELEASED", "The end of a `with` block"),
        ("NOT_FOUND", "HANDLE_UNKNOWN", "another tenant"),
        ("NOT_FOUND", "SERVER_RESTARTED", "on_lost="),
        ("NOT_FOUND", "HANDLE_EVICTED", "gone$"),
        ("DEADLINE_EXCEEDED", "UPLOAD_SLOW", "--upload-min-rate"),
        ("DEADLINE_EXCEEDED", "SERIES_IDLE", "start= its factor"),
        ("DEADLINE_EXCEEDED", "", "longer timeout="),
    ],
)
def test_the_next_step_fits_the_reason(code, reason, step):
    packed = status_details(reason)
    error = error_from(code, "gone", [("grpc-status-details-bin", packed)], "here:1")
    assert re.search(step, str(error))


@pytest.mark.parametrize("reason", ["HANDLE_EXPIRED", "HANDLE_RELEASED", "HANDLE_UNKNOWN", "HANDLE_EVICTED"])
def test_errors_of_lost_factors_advise_no_with_block(reason):
    error = error_from("NOT_FOUND", "gone", [("grpc-status-details-bin", status_details(reason))], "here:1")
    assert "use `with" not in str(error)


@pytest.mark.parametrize(
    ("how", "step"),
    [
        ({"algorithm": "cm"}, "use an algorithm that pivots, such as algorithm='getrf'"),
        ({"algorithm": "getrf"}, "use equilibrate=True, or scale the matrix"),
        ({"algorithm": "getrf", "row_scaled": True}, "scale the matrix"),
        (
            {"algorithm": "klu", "col_scaled": True, "dtype": "float32"},
            "use dtype=float64, or scale the matrix",
        ),
        (
            {"algorithm": "getrf", "dtype": "complex64"},
            "use equilibrate=True or dtype=float64, or scale the matrix",
        ),
    ],
)
def test_overflow_advice_omits_options_already_used(how, step):
    fields = {"row_scaled": False, "col_scaled": False, "dtype": np.dtype("float64")}
    record = types.SimpleNamespace(**{**fields, **how})
    assert _diagnostics.advice_on_overflow(record) == step


def test_a_silent_server_is_reported_as_overloaded_or_stopped():
    for text in (
        "Stream removed (ping timeout)",
        "connection attempt timed out before receiving SETTINGS frame",
    ):
        error = error_from("UNAVAILABLE", text, [], "here:1")
        assert "stopped or overloaded" in str(error)
        assert "Start croutd" not in str(error)


def test_the_servers_delay_is_obeyed():
    with FakeServer(FULL, FULL, made()) as server, connect(server) as c:
        begin = time.monotonic()
        assert c.lu_factor(np.eye(2)).handle == "h"
        assert time.monotonic() - begin >= 0.04
        assert server.requests[0] == server.requests[1] == server.requests[2]


def test_retries_end():
    with FakeServer(*[FULL] * 4) as server, connect(server) as c:
        with pytest.raises(crout.Overloaded, match=r"Try again in 0\.02 s") as caught:
            c.lu_factor(np.eye(2))
        assert caught.value.retry_delay == pytest.approx(0.02)
        assert caught.value.reason == "QUEUE_FULL"
        assert len(server.requests) == 4


def test_a_retry_delay_past_the_deadline_fails_at_once():
    busy = Status(grpc.StatusCode.RESOURCE_EXHAUSTED, details=status_details("QUEUE_FULL", delay=100))
    with FakeServer(busy) as server, connect(server) as c:
        with pytest.raises(crout.Overloaded):
            c.lu_factor(np.eye(2), timeout=20)
        assert len(server.requests) == 1


def test_after_a_lost_connection_only_safe_calls_are_repeated():
    solved = solution_messages(2)
    with FakeServer(LOST, made(), LOST, solved, LOST, LOST, made()) as server, connect(server) as c:
        f = c.lu_factor(np.eye(2), request_id="once")
        f.solve(np.ones(2))
        with pytest.raises(crout.Unavailable):
            c.lu_factor(np.eye(2))
        assert len(server.requests) == 5
        with pytest.raises(crout.Unavailable):
            f.refactor(np.eye(2))
        assert len(server.requests) == 6


def test_delays():
    requested = crout.Overloaded("no", retry_delay=1e9)
    attempts = Attempts(crout.RetryPolicy(3), RetryClass.REFUSED_ONLY, None)
    attempts.begin()
    assert 30 <= attempts.delay_after(requested, True, False) <= 36
    with pytest.raises(crout.Overloaded):
        attempts.delay_after(requested, False, True)
    lost = crout.Unavailable("no")
    attempts = Attempts(crout.RetryPolicy(3), RetryClass.IDEMPOTENT, None)
    for most in (0.05, 0.1):
        attempts.begin()
        assert most / 2 <= attempts.delay_after(lost, True, True) <= most
    attempts.begin()
    with pytest.raises(crout.Unavailable):
        attempts.delay_after(lost, True, False)
    assert 0.1 <= attempts.delay_after(lost, True, True) <= 0.2  # the server may be restarting


def solution_messages(rows, cols=1, data=b"\0" * 16, dtype=2, layout=1, result=True, factor=None):
    spec = matrix_pb2.DenseSpec(dtype=dtype, layout=layout, rows=rows, cols=cols)
    kind = service.SolveResponse if factor is None else service.FactorizeAndSolveResponse
    message = kind(header=service.SolutionHeader(solution=spec), data=data)
    if factor is not None:
        message.factor.CopyFrom(factor)
    if result:
        message.result.backward_error = 0
    return [message.SerializeToString()]


# A complex solution, although the client's factor is real.
COMPLEX = solution_messages(2, dtype=4, data=b"\0" * 32)
COMPLEX[0] += service.SolveResponse(result=service.SolveResult(factor_version=1)).SerializeToString()
HEADER_TWICE = solution_messages(2, result=False) + solution_messages(2)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [b""],
        [b"\xff"],
        [b"\x1a\x05ab"],
        [b"\x0b"],
        [b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"],
        solution_messages(2, data=b"\0" * 15),
        solution_messages(2, data=b"\0" * 17),
        solution_messages(2, result=False),
        solution_messages(3, data=b"\0" * 24),
        solution_messages(2, 2, data=b"\0" * 32),
        solution_messages(-2),
        solution_messages(2**62, 2**62),
        solution_messages(2, dtype=1, data=b"\0" * 8),
        solution_messages(2, dtype=77),
        COMPLEX,
        HEADER_TWICE,
        [service.SolveResponse(data=b"\0" * 16).SerializeToString()],
        [service.SolveResponse(result=service.SolveResult()).SerializeToString()],
    ],
)
def test_malformed_solutions_are_rejected(messages):
    with FakeServer(made(), messages, messages) as server, connect(server) as c:
        f = c.lu_factor(np.eye(2))
        with pytest.raises(crout.ProtocolError):
            f.solve(np.ones(2))
        assert len(server.requests) == 2

        async def awaited():
            async with crout.aio.connect(server.address) as a:
                await crout.aio.AsyncFactor(a, f.record).solve(np.ones(2))

        with pytest.raises(crout.ProtocolError):
            asyncio.run(awaited())


def test_partly_overwritten_input_is_not_sent_again():
    truncated = solution_messages(2, data=b"\1" * 8, result=False)

    class ThenLost(list):
        def __iter__(self):
            yield from truncated
            raise RuntimeError("the connection is lost")  # UNKNOWN to the client

    with FakeServer(made(), ThenLost()) as server, connect(server) as c:
        f = c.lu_factor(np.eye(2))
        with pytest.raises(crout.CroutError):
            f.solve(np.ones(2), overwrite_b=True)
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "messages",
    [
        [],
        made(n=3),
        made(n=-1),
        [service.FactorizeResponse().SerializeToString()],
        made(create_time={"seconds": 2**62}),
    ],
)
def test_malformed_factors_are_rejected(messages):
    with FakeServer(messages) as server, connect(server) as c, pytest.raises(crout.ProtocolError):
        c.lu_factor(np.eye(2))


def factors_message(rows=2, permutation=(0, 1), ipiv=(1, 2), size=32, scales=(), n=2):
    spec = matrix_pb2.DenseSpec(dtype=2, layout=1, rows=rows, cols=2)
    header = service.GetFactorsHeader(
        factor=factor(n), permutation=permutation, ipiv=ipiv, row_scales=scales, lu=spec
    )
    return [service.GetFactorsResponse(header=header, data=bytes(size)).SerializeToString()]


def test_downloads_factors():
    with FakeServer(made(), factors_message()) as server, connect(server) as c:
        P, L, U = c.lu_factor(np.eye(2)).to_lu()
        np.testing.assert_array_equal(P @ L, np.eye(2))
        np.testing.assert_array_equal(U, 0)


@pytest.mark.parametrize(
    "messages",
    [
        factors_message(rows=3, size=48),
        factors_message(permutation=(0, 0)),
        factors_message(permutation=(0,)),
        factors_message(permutation=(0, 2**62)),
        factors_message(ipiv=(0, 1)),
        factors_message(ipiv=(1, 3)),
        factors_message(ipiv=()),
        factors_message(size=31),
        factors_message(scales=(1.0,)),
        factors_message(scales=(1.0, 0.0)),
        factors_message(scales=(1.0, math.nan)),
        factors_message(n=3),
    ],
)
def test_malformed_downloads_are_rejected(messages):
    with FakeServer(made(), messages) as server, connect(server) as c:
        f = c.lu_factor(np.eye(2))
        with pytest.raises(crout.ProtocolError):
            f.to_lu()


def test_unavailable_names_the_address(address):
    with pytest.raises(crout.Unavailable, match=r"Start croutd at 127\.0\.0\.1:1, or") as caught:
        crout.connect("127.0.0.1:1", retry=crout.RetryPolicy(1)).lu_factor(np.eye(2))
    assert isinstance(caught.value, ConnectionError)


def test_a_call_of_the_metrics_port_is_reported_as_such(daemon):
    c = crout.connect(daemon.metrics_address, retry=crout.RetryPolicy(1))
    with c, pytest.raises(crout.Unavailable, match="call the port of --listen"):
        c.server_info()


@pytest.mark.parametrize(
    "options", [{"address": ""}, {"timeout": 0}, {"timeout": -1.0}], ids=["address", "zero", "negative"]
)
def test_connect_rejects_invalid_arguments(options):
    with pytest.raises(ValueError, match=r"address|timeout"):
        crout.connect(**options)
    with pytest.raises(ValueError, match="max_attempts"):
        crout.RetryPolicy(0)
