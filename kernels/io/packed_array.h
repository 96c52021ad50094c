// The order in which an `array` file gives its values: columns one after the other, of symmetric
// and hermitian matrices the lower triangle, of skew-symmetric ones what lies strictly below the
// diagonal.
#ifndef CROUT_KERNELS_IO_PACKED_ARRAY_H_
#define CROUT_KERNELS_IO_PACKED_ARRAY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/io/matrix_market.h"
#include "kernels/stop_counter.h"

namespace crout {

// Values that the file must hold. rows and columns below 2^31.
int64_t PackedCount(const MatrixMarketHeader& header);

// 0-based (row, column) of value number `index`, 0 <= index < PackedCount(header).
std::pair<int64_t, int64_t> PackedPosition(const MatrixMarketHeader& header, int64_t index);

// The number of the value that is in row and column `j` of a symmetric or hermitian matrix.
int64_t PackedDiagonal(const MatrixMarketHeader& header, int64_t j);

// The full matrix, column-major with lda = rows, from blocks of values in file order that hold
// PackedCount(header) values together. Each block is freed once it was used. Of complex matrices
// the real or the imaginary parts. `mirror_sign`: as MirrorSign() or ImaginaryMirrorSign() says.
// The result is undefined once `counter` stops.
std::vector<double> ExpandPacked(const MatrixMarketHeader& header, double mirror_sign,
                                 std::vector<std::vector<double>> blocks, StopCounter& counter);

}  // namespace crout

#endif  // CROUT_KERNELS_IO_PACKED_ARRAY_H_
