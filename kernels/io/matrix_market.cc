// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/matrix_market.h"

#include <limits>

#include "kernels/io/sparse_matrix.h"

namespace crout {

int64_t PeakBytes(const MatrixMarketHeader& header) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  // The products below cannot overflow up to 2^56 entries.
  if (header.entries > int64_t{1} << 56) return kMax;
  const int64_t imaginary = header.complex() ? sizeof(double) : 0;
  const int64_t value = int64_t{sizeof(double)} + imaginary;
  if (!header.coordinate) {
    const int64_t full = header.rows * header.columns;
    if (full > int64_t{1} << 56) return kMax;
    return (header.entries + full) * value;
  }
  return header.entries * (int64_t{sizeof(MatrixEntry)} + imaginary) +
         static_cast<int64_t>(AssembledBytes(header));
}

}  // namespace crout
