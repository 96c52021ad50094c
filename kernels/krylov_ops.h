// SPDX-License-Identifier: Apache-2.0

// Device operations of Krylov subspace methods besides products and solves.
#ifndef CROUT_KERNELS_KRYLOV_OPS_H_
#define CROUT_KERNELS_KRYLOV_OPS_H_

#include "absl/status/status.h"
#include "kernels/matrix.h"

namespace crout {

// Bases of k independent Krylov spaces, one per right-hand side, with the same number of vectors
// each. Vector j of space c is column j * k + c of `vectors`, which is n x (k * count) with ld = n.
struct KrylovBases {
  AnyMatrix vectors;
  int64_t spaces = 0;  // k

  int64_t count() const { return vectors.cols / spaces; }
  // Vector j of every space: n x k.
  AnyMatrix Block(int64_t j) const { return Blocks(j, 1).vectors; }
  KrylovBases Blocks(int64_t first, int64_t count) const {
    AnyMatrix blocks = vectors;
    blocks.data += first * spaces * vectors.ld * static_cast<int64_t>(SizeOf(vectors.dtype));
    blocks.cols = count * spaces;
    return {blocks, spaces};
  }
};

// Bound to one context (ExecutionContext::krylov_ops). All matrices are in device memory, of one
// type: float64 or complex128. Calls enqueue; status as in MatrixOps. Results are bitwise
// reproducible.
class KrylovOps {
 public:
  virtual ~KrylovOps() = default;

  // h(j, c) := v^H w(:, c), where v is vector j of space c. w: n x k; h: count x k. v may be w.
  virtual absl::Status Dots(const KrylovBases& v, const AnyMatrix& w, const AnyMatrix& h) = 0;

  // w(:, c) := w(:, c) + alpha sum over j of h(j, c) v, where v is vector j of space c. w must not
  // overlap the vectors.
  virtual absl::Status AddCombination(double alpha, const KrylovBases& v, const AnyMatrix& h,
                                      const AnyMatrix& w) = 0;

  // w(:, c) := scales[c] w(:, c), for the k columns of w.
  virtual absl::Status ScaleColumns(const double* scales, const AnyMatrix& w) = 0;

  // most[c] := largest modulus in w(:, c). NaN if the column contains NaN; 0 if it has no rows.
  virtual absl::Status ColumnMaxAbs(const AnyMatrix& w, double* most) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_KRYLOV_OPS_H_
