# SPDX-License-Identifier: Apache-2.0
"""Reports of progress, and the bars that show them."""

import os
import pty
import sys
import threading
import types

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from daemon import eventually

import crout
from crout import _messages, _progress
from crout.results import Progress
from crout.v1 import factorization_service_pb2 as service


def test_progress_reports_the_bytes_sent(client, regular):
    steps = []
    client.lu_factor(regular(500), progress=steps.append)
    assert steps[-1].bytes_sent == 500 * 500 * 8
    assert [s.bytes_sent for s in steps] == sorted(s.bytes_sent for s in steps)


def test_progress_has_the_bytes_of_the_whole_call(client, regular, tmp_path):
    A = regular(8)
    sparse = scipy.sparse.csr_array(A)
    scipy.io.mmwrite(tmp_path / "A.mtx", sparse)

    def total(call, *arguments, **options):
        steps = []
        call(*arguments, progress=steps.append, **options)
        assert {step.bytes_total for step in steps} == {steps[-1].bytes_sent}
        return steps[-1].bytes_total

    assert total(client.lu_factor, A) == A.nbytes
    assert total(client.lu_factor, sparse) == A.nbytes + 4 * (64 + 9)
    assert total(client.lu_factor, tmp_path / "A.mtx") == (tmp_path / "A.mtx").stat().st_size
    assert total(client.solve, A, np.ones((8, 3))) == A.nbytes + 8 * 3 * 8
    assert total(client.lu_factor, [A, A]) == 2 * A.nbytes + 2 * 2 * 8


def test_reports_of_the_server_have_all_fields():
    message = service.Progress(
        phase=service.PHASE_FACTOR, predicted_seconds=2.5, columns_done=30, columns=40, jobs_ahead=1
    )
    report = _messages.progress(message, Progress(bytes_sent=8, bytes_total=16))
    assert report == Progress(8, 16, "factor", 1, 2.5, 30, 40)


class FakeTqdm(types.ModuleType):
    """Replaces tqdm, which may not be installed. Records the bars in the order of their creation."""

    def __init__(self):
        super().__init__("tqdm")
        self.bars = []

    def tqdm(self, **options):
        self.bars.append(FakeBar(options))
        return self.bars[-1]


class FakeBar:
    def __init__(self, options):
        self.options = options
        self.start_t = 0.0
        self.drawn = []
        self.closed = False

    def set_postfix_str(self, text):
        self.drawn.append((self.n, text))

    def close(self):
        self.closed = True


@pytest.fixture
def tqdm(monkeypatch):
    fake = FakeTqdm()
    monkeypatch.setitem(sys.modules, "tqdm", fake)
    monkeypatch.setitem(sys.modules, "tqdm.auto", fake)
    return fake


def test_a_long_call_shows_a_bar_of_tqdm(daemon, regular, tqdm):
    with crout.connect(daemon.address) as client:
        daemon.hold("scheduler.job")
        call = threading.Thread(target=client.lu_factor, args=(regular(50),), kwargs={"progress": True})
        call.start()
        drawn = eventually(lambda: tqdm.bars and tqdm.bars[0].drawn)
        daemon.release("scheduler.job")
        call.join()
    assert drawn
    assert all(bar.closed for bar in tqdm.bars)


def test_bars_of_tqdm_show_the_stages_of_a_call(tqdm):
    bar = _progress.make_bar()
    bar.draw(Progress(20, 80), 0.5)
    bar.draw(Progress(80, 80, "receive"), 0.6)
    bar.draw(Progress(80, 80, "analyze", steps_done=2, steps=4), 0.1)
    bar.draw(Progress(80, 80, "queue", jobs_ahead=3, predicted_seconds=2.5), 7.0)
    bar.draw(Progress(80, 80, "factor", columns_done=30, columns=40), 0.1)
    bar.draw(Progress(80, 80, "factor", columns_done=40, columns=40), 0.2)
    shown = [(b.options["desc"], b.options["unit"], b.options["total"], b.drawn) for b in tqdm.bars]
    assert shown == [
        ("upload", "B", 80, [(20, ""), (80, "")]),
        ("analyzing", " steps", 4, [(2, "")]),
        ("queued", " ", None, [(0, "3 ahead, about 2.5 s in all")]),
        ("factoring", " columns", 40, [(30, ""), (40, "")]),
    ]
    assert [b.closed for b in tqdm.bars] == [True, True, True, False]
    assert tqdm.bars[2].start_t == -7.0  # counts from the start of the phase
    bar.close()
    assert tqdm.bars[-1].closed


def test_without_tqdm_a_terminal_shows_a_plain_bar(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    master, slave = pty.openpty()
    with open(slave, "w") as terminal, open(master, "rb", buffering=0) as screen:
        monkeypatch.setattr(sys, "stderr", terminal)
        bar = _progress.make_bar()
        bar.draw(Progress(1 << 20, 1 << 22), 1.0)
        bar.close()
        shown = b""
        while shown.count(b"\r") < 2:
            shown += os.read(screen.fileno(), 1024)
    assert shown.startswith(b"\r\x1b[Kupload  [=======  ")
    assert shown.endswith(b"\r\x1b[K")


def test_without_tqdm_and_a_terminal_there_is_no_bar(monkeypatch, client, regular, capfd):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert _progress.make_bar() is None
    monkeypatch.setattr(sys, "stderr", None)
    assert _progress.make_bar() is None
    client.lu_factor(regular(50), progress=True)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress(3 << 19, 3 << 20), f"upload  [{15 * '='}{15 * ' '}]  50 %  1.5 of 3.0 MiB  2.0 s"),
        (Progress(3 << 19), "upload  1.5 MiB  2.0 s"),
        (Progress(0, 0), "upload  0.0 MiB  2.0 s"),
        (
            Progress(8, 8, "analyze", steps_done=1, steps=4),
            f"analyzing  [{7 * '='}{23 * ' '}]  25 %  1 of 4 steps  2.0 s",
        ),
        (Progress(8, 8, "queue", jobs_ahead=2), "queued  2 ahead  2.0 s"),
        (Progress(8, 8, "factor", columns=9, predicted_seconds=40), "factoring  about 40 s in all  2.0 s"),
        (
            Progress(8, 8, "factor", columns_done=9, columns=9),
            f"factoring  [{30 * '='}]  100 %  9 of 9 columns  2.0 s",
        ),
        (Progress(8, 8, "solve"), "solving  2.0 s"),
        (Progress(8, 8, "17"), "17  2.0 s"),  # a phase of a newer server
    ],
)
def test_the_plain_bar(progress, line):
    assert _progress.plain_line(progress, 2.0) == line


@pytest.mark.parametrize("after", [0, 3 << 20], ids=["at once", "in the midst"])
def test_an_error_of_the_callback_ends_the_call(daemon, regular, after, capfd):
    def refuse(progress):
        if progress.bytes_sent >= after:
            raise KeyError("no")

    with crout.connect(daemon.address) as client:
        with pytest.raises(KeyError):
            client.lu_factor(regular(800), progress=refuse)
        assert list(client.list()) == []
    assert "Traceback" not in capfd.readouterr().err
