// What is refused about the numbers of an upload.
#ifndef CROUT_KERNELS_INPUT_CHECKS_H_
#define CROUT_KERNELS_INPUT_CHECKS_H_

#include <string_view>

#include "absl/status/status.h"
#include "kernels/matrix.h"
#include "kernels/matrix_ops.h"

namespace crout {

// Largest magnitude that still rounds to a finite value of `dtype`.
double LargestConvertible(DType dtype);

// INVALID_ARGUMENT if `stats`, of `shape`, name a NaN or Inf. `what`: "matrix", "right-hand side".
absl::Status CheckFinite(const MatrixStats& stats, const PackedMatrix& shape,
                         std::string_view what);

// INVALID_ARGUMENT if `stats` name an element that overflowed when it was converted to `dtype`.
absl::Status CheckNoOverflow(const MatrixStats& stats, const PackedMatrix& shape, DType dtype,
                             std::string_view what);

}  // namespace crout

#endif  // CROUT_KERNELS_INPUT_CHECKS_H_
