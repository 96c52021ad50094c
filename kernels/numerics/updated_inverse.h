// SPDX-License-Identifier: Apache-2.0

// The inverse of a matrix after a low-rank update of the factored matrix.
#ifndef CROUT_KERNELS_NUMERICS_UPDATED_INVERSE_H_
#define CROUT_KERNELS_NUMERICS_UPDATED_INVERSE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/matrix_ops.h"
#include "kernels/operators.h"

namespace crout {

// Data for the inverse of A + U V^T, with U and V n x k, given M, an approximate inverse of A
// (Woodbury 1950; Hager, "Updating the inverse of a matrix", SIAM Review 31, 1989):
//
//   (A + U V^T)^-1 = M - Z C^-1 V^T M   with   Z = M U,   C = I + V^T Z.
//
// A view of one block of device memory.
struct LowRankUpdate {
  // INVALID_ARGUMENT if the size overflows.
  static absl::StatusOr<size_t> Bytes(int64_t n, int64_t rank, DType vector_type);

  // `block` has Bytes() bytes, aligned to 256. `rank` is at least 1.
  LowRankUpdate(std::byte* block, int64_t n, int64_t rank, DType vector_type);

  int64_t rank() const { return z.cols; }

  AnyMatrix z;     // n x k; U in columns that were just added
  AnyMatrix v;     // k x n: the transpose of V
  AnyMatrix core;  // k x k: C^-1, or 0 if C is singular
};

// Enqueues: `update` := the changes of `before` (null for none), followed by u (n x r) and v (r x
// n), whose types must convert to that of `update`. Complete it with CompleteUpdate.
absl::Status ExtendUpdate(MatrixOps& ops, const LowRankUpdate* before, const AnyMatrix& u,
                          const AnyMatrix& v, const LowRankUpdate& update);

// Computes Z for the last `added` columns of U by one application of `inverse`, which is M and
// supports that many columns; then computes C^-1. Blocks. Returns false if C, and therefore A + U
// V^T, is singular; an UpdatedInverse then equals M.
absl::StatusOr<bool> CompleteUpdate(ExecutionContext& context, InverseOperator& inverse,
                                    int64_t added, const LowRankUpdate& update);

// Approximates the inverse of A + U V^T as well as M approximates the inverse of A, if C is
// well-conditioned. Borrows all arguments. Applying it costs one application of M, two products
// with n x k matrices and one with a k x k matrix.
class UpdatedInverse final : public InverseOperator {
 public:
  // Returns the bytes of `work` for up to nrhs columns.
  static absl::StatusOr<size_t> WorkBytes(int64_t rank, int64_t nrhs, DType vector_type);

  UpdatedInverse(ExecutionContext& context, InverseOperator& inverse, const LowRankUpdate& update,
                 std::byte* work)
      : context_(context), inverse_(inverse), update_(update), work_(work) {}

  int64_t order() const override { return inverse_.order(); }
  DType vector_type() const override { return inverse_.vector_type(); }
  absl::Status Apply(Op op, const AnyMatrix& in, const AnyMatrix& out) override;

 private:
  ExecutionContext& context_;
  InverseOperator& inverse_;
  const LowRankUpdate update_;
  std::byte* const work_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_UPDATED_INVERSE_H_
