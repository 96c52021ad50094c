# SPDX-License-Identifier: Apache-2.0
"""Description of a sparse factorization."""

from __future__ import annotations

from dataclasses import dataclass

from crout._words import optional
from crout.v1 import factor_pb2


@dataclass(frozen=True)
class SparseInfo:
    """Results of a sparse factorization.

    Attributes
    ----------
    lu_entries : int
        Stored entries of L and U, without the unit diagonal.
    flops : float
        Operations of the factorization; a complex operation counts as one.
    perturbed_pivots : int
        Pivots that were too small and were perturbed (increased); solves are corrected for them.
    negative_pivots : int or None
        Number of negative eigenvalues. Set for a real symmetric matrix without row interchanges.
    fronts, levels, largest_front : int
        Nodes of the elimination tree, its depth, and the order of its largest dense block.
    ordering : str
        Fill-reducing ordering: "amd", "metis".
    analysis_reused : bool
        Whether the pattern was known from another factor, so that no analysis ran.
    postponements : int
        Number of repeated factorizations in which small pivots were postponed.
    pattern_digest : str
        Digest of the positions of A's entries, including stored zeros.
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
    """The record of a SparseInfo message."""
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
