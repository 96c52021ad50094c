// SPDX-License-Identifier: Apache-2.0

// Statistics of a small matrix in host memory before it is factored.
#ifndef CROUT_KERNELS_NUMERICS_MATRIX_SCAN_H_
#define CROUT_KERNELS_NUMERICS_MATRIX_SCAN_H_

#include <cstdint>

#include "kernels/matrix.h"
#include "kernels/matrix_ops.h"

namespace crout {

struct MatrixScan {
  MatrixStats stats;  // except first_overflow
  ScaleStats scale;   // unset if `stats` reports a NaN or Inf
};

// Computes the statistics on the calling thread. The elements are in host memory.
MatrixScan ScanMatrix(const PackedMatrix& a);

// Returns MatrixStats::first_non_finite only.
int64_t FirstNonFinite(const PackedMatrix& a);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_MATRIX_SCAN_H_
