// What a small matrix in host memory says of itself before it is factored.
#ifndef CROUT_KERNELS_NUMERICS_MATRIX_SCAN_H_
#define CROUT_KERNELS_NUMERICS_MATRIX_SCAN_H_

#include <cstdint>

#include "kernels/matrix.h"
#include "kernels/matrix_ops.h"

namespace crout {

struct MatrixScan {
  MatrixStats stats;  // but for first_overflow
  ScaleStats scale;   // not where `stats` name a NaN or Inf
};

// Of a matrix whose elements are in host memory, by the calling thread.
MatrixScan ScanMatrix(const PackedMatrix& a);

// MatrixStats::first_non_finite alone.
int64_t FirstNonFinite(const PackedMatrix& a);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_MATRIX_SCAN_H_
