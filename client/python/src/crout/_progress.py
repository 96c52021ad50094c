# SPDX-License-Identifier: Apache-2.0
"""Progress of a call."""

from __future__ import annotations

from dataclasses import dataclass

from crout._words import word
from crout.v1 import factorization_service_pb2


@dataclass(frozen=True)
class Progress:
    """Progress of a call.

    Attributes
    ----------
    bytes_sent : int
        Payload bytes passed to gRPC.
    phase : str
        "receive", "analyze", "queue", "factor" or "solve"; "" before the server's first report.
    jobs_ahead : int
        Jobs ahead in the queue.
    columns_done, columns : int
        Finished columns of L and U, and all columns; 0 if the method does not report progress.
    steps_done, steps : int
        Finished and total steps of the analysis of a sparse matrix, if it is long; 0 in other phases.
    """

    bytes_sent: int
    phase: str = ""
    jobs_ahead: int = 0
    columns_done: int = 0
    columns: int = 0
    steps_done: int = 0
    steps: int = 0


def progress(message: factorization_service_pb2.Progress, bytes_sent: int) -> Progress:
    """The progress of a Progress message."""
    return Progress(
        bytes_sent=bytes_sent,
        phase=word(factorization_service_pb2.Phase, "PHASE_", message.phase),
        jobs_ahead=message.jobs_ahead,
        columns_done=message.columns_done,
        columns=message.columns,
        steps_done=message.steps_done,
        steps=message.steps,
    )
