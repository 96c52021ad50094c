// What Krylov subspace methods ask of a device beside products and solves.
#ifndef CROUT_KERNELS_KRYLOV_OPS_H_
#define CROUT_KERNELS_KRYLOV_OPS_H_

#include "absl/status/status.h"
#include "kernels/matrix.h"

namespace crout {

// The bases of k Krylov spaces, one for each right-hand side, of as many vectors each: vector j of
// the space of column c is column j * k + c of `vectors`, n x (k * count) without gaps between
// columns (ld = n). The spaces have nothing to do with each other.
struct KrylovBases {
  AnyMatrix vectors;
  int64_t spaces = 0;  // k

  int64_t count() const { return vectors.cols / spaces; }
  // The vectors number j of all spaces: n x k.
  AnyMatrix Block(int64_t j) const { return Blocks(j, 1).vectors; }
  KrylovBases Blocks(int64_t first, int64_t count) const {
    AnyMatrix blocks = vectors;
    blocks.data += first * spaces * vectors.ld * static_cast<int64_t>(SizeOf(vectors.dtype));
    blocks.cols = count * spaces;
    return {blocks, spaces};
  }
};

// Of one context (ExecutionContext::krylov_ops). All matrices are in the memory of its device and
// of one wide type, float64 or complex128. Calls enqueue; the status is as that of MatrixOps. The
// same input gives the same bits, every time.
class KrylovOps {
 public:
  virtual ~KrylovOps() = default;

  // h(j, c) := v^H w(:, c), v vector j of space c. w: n x k; h: count x k. v may be w.
  virtual absl::Status Dots(const KrylovBases& v, const AnyMatrix& w, const AnyMatrix& h) = 0;

  // w(:, c) := w(:, c) + alpha sum over j of h(j, c) v, v vector j of space c. w is apart from the
  // vectors.
  virtual absl::Status AddCombination(double alpha, const KrylovBases& v, const AnyMatrix& h,
                                      const AnyMatrix& w) = 0;

  // w(:, c) := scales[c] w(:, c), of k scales.
  virtual absl::Status ScaleColumns(const double* scales, const AnyMatrix& w) = 0;

  // most[c] := the largest modulus in w(:, c); NaN where there is one. 0 of no rows.
  virtual absl::Status ColumnMaxAbs(const AnyMatrix& w, double* most) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_KRYLOV_OPS_H_
