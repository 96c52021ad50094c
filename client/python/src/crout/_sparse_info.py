"""What the server says of a factorization that stayed sparse."""

from __future__ import annotations

from dataclasses import dataclass

from crout._words import optional
from crout.v1 import factor_pb2


@dataclass(frozen=True)
class SparseInfo:
    """What the factorization of a sparse matrix came to, by a method that keeps it sparse.

    Attributes
    ----------
    lu_entries : int
        Entries of L and U as they are stored, the unit diagonal not counted.
    flops : float
        Operations of the factorization, a complex one counted as one.
    perturbed_pivots : int
        Pivots that stayed too small and were made larger: solves are corrected for them.
    negative_pivots : int or None
        Of a symmetric real matrix whose rows were not exchanged: how many eigenvalues are negative.
    fronts, levels, largest_front : int
        Of the elimination tree: its nodes, its depth, and the order of the largest dense block.
    ordering : str
        What ordered it: "amd", "metis".
    analysis_reused : bool
        The pattern was known from another factor: nothing was ordered.
    postponements : int
        How often pivots that were too small were eliminated later instead, and all factored again.
    pattern_digest : str
        Digest of the positions of A's entries, stored zeros too.
    """

    lu_entries: int
    flops: float
    perturbed_pivots: int
    negative_pivots: int | None
    fronts: int
    levels: int
    largest_front: int
    ordering: str
    analysis_reused: bool
    postponements: int = 0
    pattern_digest: str = ""


def sparse_info(message: factor_pb2.SparseInfo) -> SparseInfo:
    """What a SparseInfo message says."""
    return SparseInfo(
        lu_entries=message.lu_entries,
        flops=message.flops,
        perturbed_pivots=message.perturbed_pivots,
        negative_pivots=optional(message, "negative_pivots"),
        fronts=message.fronts,
        levels=message.levels,
        largest_front=message.largest_front,
        ordering=message.ordering,
        analysis_reused=message.analysis_reused,
        postponements=message.postponements,
        pattern_digest=message.pattern_digest,
    )
