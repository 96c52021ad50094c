// SPDX-License-Identifier: Apache-2.0

// Applies the row interchanges of a factorization to right-hand sides.
#ifndef CROUT_KERNELS_HOST_OPS_INTERCHANGES_H_
#define CROUT_KERNELS_HOST_OPS_INTERCHANGES_H_

#include <cstdint>
#include <utility>

#include "kernels/matrix.h"

namespace crout::host {

enum class InterchangeOrder : uint8_t { kForward, kBackward };

// Forward: b := P b. Backward: b := P^T b. PA = LU; `ipiv` holds one 1-based row per row of b.
template <class T>
void ApplyInterchanges(const int64_t* ipiv, InterchangeOrder order, const MatrixView<T>& b) {
  for (int64_t j = 0; j < b.cols; ++j) {
    for (int64_t k = 0; k < b.rows; ++k) {
      const int64_t i = order == InterchangeOrder::kForward ? k : b.rows - 1 - k;
      const int64_t p = ipiv[i] - 1;
      if (p != i) std::swap(b(i, j), b(p, j));
    }
  }
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_INTERCHANGES_H_
