// SPDX-License-Identifier: Apache-2.0

// Checks a Schur complement by applying the block elimination to a random vector.
#ifndef CROUT_KERNELS_NUMERICS_SCHUR_PROBE_H_
#define CROUT_KERNELS_NUMERICS_SCHUR_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"

namespace crout {

inline constexpr int64_t kSchurProbeVectors = 4;

// Computes SchurSummary::backward_error in two steps, between which S overwrites A22. The host
// vectors and `work` may be in use until Synchronize().
class SchurProbe {
 public:
  // A has order n and a leading block of order k, 0 < k < n. `work`: kSchurProbeVectors * n
  // elements of `dtype` (float64, or complex128 if A is complex) in device memory.
  SchurProbe(ExecutionContext& context, const MatrixStats& a, DType dtype, int64_t n, int64_t k,
             std::byte* work);

  // Enqueues the products with A (n x n) and X (k x n - k).
  absl::Status Start(const AnyMatrix& a, const AnyMatrix& x);
  // Enqueues the product with S (n - k x n - k).
  absl::Status Finish(const AnyMatrix& s);
  // Returns the backward error. Blocks until the device is done.
  absl::StatusOr<double> BackwardError();

 private:
  // A vector of `work`, from element `row` on.
  AnyMatrix Vector(int which, int64_t row, int64_t rows) const {
    return {work_ + (which * n_ + row) * SizeOf(dtype_), dtype_, rows, 1, n_};
  }
  // The parts of element i of a host vector.
  double* HostParts(int which, int64_t i) { return &host_[(which * n_ + i) * parts_]; }
  double HostMagnitude(int which, int64_t i);
  // out := -m x.
  absl::Status Multiply(const AnyMatrix& m, const AnyMatrix& x, const AnyMatrix& out);

  ExecutionContext& context_;
  const double norm_inf_;
  const DType dtype_;
  const int64_t parts_;  // parts of an element: 2 if complex
  const int64_t n_;
  const int64_t k_;
  std::byte* const work_;
  std::vector<double> host_;  // zeros and z, later the vectors read by BackwardError
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_SCHUR_PROBE_H_
