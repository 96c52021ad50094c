# SPDX-License-Identifier: Apache-2.0
"""Reports of the progress of a call, and the bar that ``progress=True`` shows."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from crout import _messages
from crout.results import Progress

ProgressCallback = Callable[[Progress], object]

_DELAY = 0.5  # seconds before the bar appears
_INTERVAL = 0.1  # seconds between redraws
_WIDTH = 30  # characters of the plain bar
_NAMES = {
    "": "upload",
    "receive": "upload",
    "analyze": "analyzing",
    "queue": "queued",
    "factor": "factoring",
    "solve": "solving",
}


class ProgressReport:
    """Reports sent bytes and the server's progress to a callback, one report at a time.

    The end of a ``with`` block calls ``close`` of the callback, if it has one.

    Parameters
    ----------
    callback : callable or None
        Receives each `Progress`.
    total : int
        Payload bytes of the call; -1 if unknown.
    """

    def __init__(self, callback: ProgressCallback | None, total: int) -> None:
        self._callback = callback
        self._lock = threading.Lock()
        self._last = Progress(bytes_sent=0, bytes_total=total)

    def __enter__(self) -> ProgressReport:
        return self

    def __exit__(self, *error: object) -> None:
        close = getattr(self._callback, "close", None)
        if close is not None:
            close()

    def on_sent(self, count: int) -> None:
        """Report the number of payload bytes that were passed to gRPC so far."""
        if self._callback is not None:
            with self._lock:
                self._last = dataclasses.replace(self._last, bytes_sent=count)
                self._callback(self._last)

    def on_phase(self, message: Any) -> None:
        """Report a Progress message of the server."""
        if self._callback is not None:
            with self._lock:
                self._last = _messages.progress(message, self._last)
                self._callback(self._last)


class ProgressBar:
    """A bar on standard error with the sent bytes, then the phase and its finished columns or steps.

    A thread draws the bar with tqdm. Without tqdm it draws a plain bar, and only on a terminal. The bar
    appears after half a second and is erased at the end.
    """

    def __init__(self) -> None:
        self._state = (Progress(bytes_sent=0), time.monotonic())  # the last report, the start of its phase
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="crout-progress", daemon=True)
        self._thread.start()

    def __call__(self, progress: Progress) -> None:
        last, begun = self._state
        self._state = (progress, begun if progress.phase == last.phase else time.monotonic())

    def close(self) -> None:
        """Erase the bar."""
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        if self._done.wait(_DELAY):
            return
        shown = make_bar()
        while shown is not None and not self._done.wait(_INTERVAL):
            progress, begun = self._state
            shown.draw(progress, time.monotonic() - begun)
        if shown is not None:
            shown.close()


def make_bar() -> TqdmBar | PlainBar | None:
    """Make a bar of tqdm, or a plain bar without tqdm; None if standard error is not a terminal either."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return PlainBar() if sys.stderr is not None and sys.stderr.isatty() else None
    return TqdmBar(tqdm)


@dataclasses.dataclass(frozen=True)
class _Stage:
    """Content of a bar: a count of `unit` up to `total`, or the elapsed time if the unit is ""."""

    name: str
    done: int = 0
    total: int = 0  # 0: unknown
    unit: str = ""
    note: str = ""


def _stage(progress: Progress) -> _Stage:
    name = _NAMES.get(progress.phase, progress.phase)
    if name == "upload":
        return _Stage(name, progress.bytes_sent, max(progress.bytes_total, 0), "B")
    if progress.columns_done:
        return _Stage(name, progress.columns_done, progress.columns, "columns")
    if progress.steps:
        return _Stage(name, progress.steps_done, progress.steps, "steps")
    notes = [f"{progress.jobs_ahead} ahead"] if progress.jobs_ahead else []
    if progress.predicted_seconds:
        notes.append(f"about {progress.predicted_seconds:.3g} s in all")
    return _Stage(name, note=", ".join(notes))


class TqdmBar:
    """A bar of tqdm for each stage of a call.

    Parameters
    ----------
    tqdm : type
        The class of the bars.
    """

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None
        self._kind = ("", "")  # name and unit of the bar's stage

    def draw(self, progress: Progress, elapsed: float) -> None:
        """Show `progress`, `elapsed` seconds after the start of its phase."""
        stage = _stage(progress)
        if self._bar is None or self._kind != (stage.name, stage.unit):
            self.close()
            self._kind = (stage.name, stage.unit)
            self._bar = self._tqdm(
                desc=stage.name,
                total=stage.total or None,
                unit="B" if stage.unit == "B" else f" {stage.unit}",
                unit_scale=stage.unit == "B",
                unit_divisor=1024,
                bar_format=None if stage.unit else "{desc} {elapsed}{postfix}",
                leave=False,
            )
            self._bar.start_t -= elapsed
        self._bar.n = stage.done
        self._bar.set_postfix_str(stage.note)  # also draws

    def close(self) -> None:
        """Erase the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class PlainBar:
    """A line on the terminal of standard error, as of croutctl."""

    def draw(self, progress: Progress, elapsed: float) -> None:
        """Show `progress`, `elapsed` seconds after the start of its phase."""
        print(f"\r\x1b[K{plain_line(progress, elapsed)}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Erase the line."""
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def plain_line(progress: Progress, elapsed: float) -> str:
    """Return the text of the plain bar, `elapsed` seconds after the start of the phase."""
    stage = _stage(progress)
    parts = [stage.name]
    if stage.total:
        share = min(stage.done / stage.total, 1.0)
        parts += [f"[{'=' * int(share * _WIDTH):{_WIDTH}}]", f"{int(share * 100)} %"]
    scale, unit = (2**20, "MiB") if stage.unit == "B" else (1, stage.unit)
    form = ".1f" if stage.unit == "B" else ".0f"
    if stage.unit:
        total = f" of {stage.total / scale:{form}}" if stage.total else ""
        parts.append(f"{stage.done / scale:{form}}{total} {unit}")
    return "  ".join([*parts, *([stage.note] if stage.note else []), f"{elapsed:.1f} s"])
