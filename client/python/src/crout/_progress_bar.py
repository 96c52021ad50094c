# SPDX-License-Identifier: Apache-2.0
"""The progress bar of ``progress=True``: a bar of tqdm, or nothing if tqdm is not installed."""

from __future__ import annotations

from typing import Any

from crout.results import Progress


class ProgressBar:
    """Shows the sent bytes, the phase, and the finished columns or steps."""

    def __init__(self) -> None:
        self._bar: Any = None
        try:
            from tqdm import tqdm
        except ImportError:
            return
        self._bar = tqdm(unit="B", unit_scale=True, unit_divisor=1024)

    def __call__(self, progress: Progress) -> None:
        if self._bar is None:
            return
        self._bar.set_description_str(progress.phase or "send", refresh=False)
        done = ""
        if progress.columns:
            done = f"{progress.columns_done} of {progress.columns} columns"
        elif progress.steps:
            done = f"{progress.steps_done} of {progress.steps} steps"
        self._bar.set_postfix_str(done, refresh=False)
        self._bar.update(progress.bytes_sent - self._bar.n)

    def close(self) -> None:
        """Leave the line on the terminal."""
        if self._bar is not None:
            self._bar.close()
