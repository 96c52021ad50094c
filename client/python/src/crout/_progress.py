"""How far the server says that a call is."""

from __future__ import annotations

from dataclasses import dataclass

from crout._words import word
from crout.v1 import factorization_service_pb2


@dataclass(frozen=True)
class Progress:
    """How far a call is.

    Attributes
    ----------
    bytes_sent : int
        Of the payload, handed to gRPC.
    phase : str
        "receive", "analyze", "queue", "factor" or "solve"; "" until the server has named one.
    jobs_ahead : int
        In the queue.
    columns_done, columns : int
        Of L and U that are final, of all; 0 where the method does not tell.
    steps_done, steps : int
        Of the analysis of a sparse matrix, where that takes long; 0 in other phases.
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
