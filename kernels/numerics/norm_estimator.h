// SPDX-License-Identifier: Apache-2.0

// Estimates the 1-norm of a matrix from products with vectors.
#ifndef CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_
#define CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/operators.h"
#include "kernels/stop_requested.h"

namespace crout {

// x := M x, or M^H x if `adjoint`. x has n elements, in host memory.
template <class T>
using ApplyOperator = absl::FunctionRef<absl::Status(bool adjoint, std::span<T> x)>;

// Returns a lower bound of |M|_1, usually within a factor of 3, from at most 11 products. Source:
// LAPACK lacn2; N. J. Higham, FORTRAN codes for estimating the one-norm of a real or complex
// matrix, ACM TOMS 14, 1988; the last product uses other magnitudes. +Inf if a product is not
// finite; 0 for n = 0. Returns the error of `apply`, if any. T is double or std::complex<double>.
template <class T>
absl::StatusOr<double> EstimateNormOne(int64_t n, ApplyOperator<T> apply);

// Applies an inverse to a vector in host memory. Borrows everything. `device_vector`: n elements of
// the inverse's vector_type() in device memory.
class HostVectorSolver {
 public:
  HostVectorSolver(ExecutionContext& context, InverseOperator& inverse, std::byte* device_vector,
                   StopRequested stop)
      : context_(context), inverse_(inverse), device_vector_(device_vector), stop_(stop) {}

  // x := op(A)^-1 x, with x of the inverse's vector_type(). Blocks; CANCELLED if `stop` returned
  // true.
  template <class T>
  absl::Status Solve(Op op, std::span<T> x) {
    return Solve(op, x.data(), kDTypeOf<T>, static_cast<int64_t>(x.size()));
  }

 private:
  absl::Status Solve(Op op, void* x, DType dtype, int64_t n);

  ExecutionContext& context_;
  InverseOperator& inverse_;
  std::byte* device_vector_;
  StopRequested stop_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_NORM_ESTIMATOR_H_
