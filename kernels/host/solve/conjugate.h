// SPDX-License-Identifier: Apache-2.0

// Reduces solves with the conjugate transpose to solves with the transpose.
#ifndef CROUT_KERNELS_HOST_SOLVE_CONJUGATE_H_
#define CROUT_KERNELS_HOST_SOLVE_CONJUGATE_H_

#include <cstdint>

#include "kernels/matrix.h"
#include "kernels/scalar.h"

namespace crout::host {

// b := conj(b). A^H X = B is equivalent to A^T conj(X) = conj(B). Calling this before and after a
// solve with A^T gives a solve with A^H, exactly. Does nothing for real types.
template <class T>
void Conjugate([[maybe_unused]] const MatrixView<T>& b) {
  if constexpr (kIsComplex<T>) {
    for (int64_t j = 0; j < b.cols; ++j) {
      for (int64_t i = 0; i < b.rows; ++i) b(i, j) = Conj(b(i, j));
    }
  }
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_SOLVE_CONJUGATE_H_
