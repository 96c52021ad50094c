# SPDX-License-Identifier: Apache-2.0
"""A factor as a linear operator, for use as a preconditioner in SciPy's iterative solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from crout.factor import Factor

Array = npt.NDArray[Any]


def inverse_operator(factor: Factor, **options: Any) -> Any:
    """The inverse of a factor's matrix, as a `scipy.sparse.linalg.LinearOperator`."""
    from scipy.sparse.linalg import LinearOperator

    for option in ("trans", "overwrite_b"):  # SciPy selects the transpose and owns its vectors.
        if option in options:
            raise TypeError(f"a linear operator takes no {option}")

    def apply(b: Array, trans: Literal[0, 2]) -> Array:
        """Solve. The real and imaginary parts of a complex b become columns of one call."""
        if not np.iscomplexobj(b) or factor.dtype.kind == "c":
            return factor._solve(b, trans=trans, **options).x
        columns = b.reshape(b.shape[0], -1)
        parts = factor._solve(np.hstack([columns.real, columns.imag]), trans=trans, **options).x
        real, imaginary = np.hsplit(parts, 2)
        both: Array = (real + 1j * imaginary).reshape(b.shape)
        return both

    n = factor.n
    return LinearOperator(
        (n, n),
        matvec=lambda b: apply(b, 0),
        rmatvec=lambda b: apply(b, 2),
        matmat=lambda b: apply(b, 0),
        rmatmat=lambda b: apply(b, 2),
        # Given explicitly; otherwise SciPy determines it by a solve.
        dtype=factor.record.matrix_dtype,
    )
