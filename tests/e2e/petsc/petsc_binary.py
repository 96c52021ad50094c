# SPDX-License-Identifier: Apache-2.0
"""Converts Matrix Market files to files of PETSc's binary viewer, which PETSc's examples read."""

import gzip
import struct

MATRIX, VECTOR = 1211216, 1211214  # class identifiers in PETSc's files


def read(path):
    """Returns the order and the rows of a square coordinate matrix, as dictionaries from columns to entries."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="ascii") as text:
        _, _, kind, field, symmetry = text.readline().lower().split()
        lines = (line for line in text if not line.startswith("%"))
        size = [int(word) for word in next(lines).split()]
        if kind != "coordinate" or symmetry not in ("general", "symmetric") or size[0] != size[1]:
            raise ValueError(f"{path} is not a square coordinate matrix, general or symmetric")
        rows = [{} for _ in range(size[0])]
        for _ in range(size[2]):
            words = next(lines).split()
            i, j = int(words[0]) - 1, int(words[1]) - 1
            numbers = [float(word) for word in words[2:]] or [1.0]
            entry = complex(*numbers) if field == "complex" else numbers[0]
            rows[i][j] = rows[i].get(j, 0) + entry
            if symmetry == "symmetric" and i != j:
                rows[j][i] = rows[i][j]
    return size[0], rows


def write(source, target, index_bytes=4, complex_scalars=False):
    """Writes a matrix and a right-hand side with solution one, in double precision."""
    n, rows = read(source)
    index = {4: "i", 8: "q"}[index_bytes]

    def indices(numbers):
        return struct.pack(f">{len(numbers)}{index}", *numbers)

    def scalars(numbers):
        if complex_scalars:
            numbers = [part for number in numbers for part in (complex(number).real, complex(number).imag)]
        return struct.pack(f">{len(numbers)}d", *numbers)

    ordered = [sorted(row.items()) for row in rows]
    entries = [entry for row in ordered for entry in row]
    with open(target, "wb") as file:
        file.write(indices([MATRIX, n, n, len(entries)]))
        file.write(indices([len(row) for row in ordered]))
        file.write(indices([column for column, _ in entries]))
        file.write(scalars([value for _, value in entries]))
        file.write(indices([VECTOR, n]))
        file.write(scalars([sum(value for _, value in row) for row in ordered]))
