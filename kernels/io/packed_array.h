// SPDX-License-Identifier: Apache-2.0

// Order of the values in an `array` file: column by column. Symmetric and hermitian files store the
// lower triangle, skew-symmetric ones the strictly lower triangle.
#ifndef CROUT_KERNELS_IO_PACKED_ARRAY_H_
#define CROUT_KERNELS_IO_PACKED_ARRAY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/io/matrix_market.h"
#include "kernels/stop_requested.h"

namespace crout {

// Number of values in the file. rows and columns are below 2^31.
int64_t PackedCount(const MatrixMarketHeader& header);

// 0-based (row, column) of value number `index`, 0 <= index < PackedCount(header).
std::pair<int64_t, int64_t> PackedPosition(const MatrixMarketHeader& header, int64_t index);

// Number of the value in row and column `j` of a symmetric or hermitian matrix.
int64_t PackedDiagonal(const MatrixMarketHeader& header, int64_t j);

// Returns the full matrix, column-major with lda = rows. `blocks` hold PackedCount(header) values
// in file order and are freed as they are used. For complex matrices the values are the real or the
// imaginary parts. `mirror_sign` is MirrorSign() or ImaginaryMirrorSign(). The result is
// undefined once `counter` stops.
std::vector<double> ExpandPacked(const MatrixMarketHeader& header, double mirror_sign,
                                 std::vector<std::vector<double>> blocks, StopCounter& counter);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_PACKED_ARRAY_H_
