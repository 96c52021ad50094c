// SPDX-License-Identifier: Apache-2.0

// Applies an inverse to a vector in host memory, for the norm estimator.
#ifndef CROUT_KERNELS_NUMERICS_HOST_VECTOR_SOLVER_H_
#define CROUT_KERNELS_NUMERICS_HOST_VECTOR_SOLVER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kernels/execution_context.h"
#include "kernels/operators.h"
#include "kernels/stop_requested.h"

namespace crout {

// Borrows everything. `device_vector`: n elements of the inverse's vector_type() in device memory.
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

#endif  // CROUT_KERNELS_NUMERICS_HOST_VECTOR_SOLVER_H_
