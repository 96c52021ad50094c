// Applies a block elimination to a random vector: how far a Schur complement can be trusted.
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

// SchurSummary::backward_error, in two steps: S takes the place of A22 between them. Its vectors in
// host memory may be in use until Synchronize(); so is `work`.
class SchurProbe {
 public:
  // A of order n and its leading block of order 0 < k < n. `work`: kSchurProbeVectors * n numbers
  // of `dtype`, float64 or, where A is complex, complex128, in device memory.
  SchurProbe(ExecutionContext& context, const MatrixStats& a, DType dtype, int64_t n, int64_t k,
             std::byte* work);

  // Enqueues the products of A (n x n) and of X (k x n - k).
  absl::Status Start(const AnyMatrix& a, const AnyMatrix& x);
  // Enqueues that of S (n - k x n - k).
  absl::Status Finish(const AnyMatrix& s);
  // What the probe found. Blocks until the device is done.
  absl::StatusOr<double> BackwardError();

 private:
  // One of the vectors of `work`, from element `row` on.
  AnyMatrix Vector(int which, int64_t row, int64_t rows) const {
    return {work_ + (which * n_ + row) * SizeOf(dtype_), dtype_, rows, 1, n_};
  }
  // Of the i-th number of a vector in host memory: its parts, and how many they are.
  double* HostParts(int which, int64_t i) { return &host_[(which * n_ + i) * parts_]; }
  double HostMagnitude(int which, int64_t i);
  // out := -m x.
  absl::Status Multiply(const AnyMatrix& m, const AnyMatrix& x, const AnyMatrix& out);

  ExecutionContext& context_;
  const double norm_inf_;
  const DType dtype_;
  const int64_t parts_;  // of a number: 2 of a complex one
  const int64_t n_;
  const int64_t k_;
  std::byte* const work_;
  std::vector<double> host_;  // zeros and z, then what BackwardError reads
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_SCHUR_PROBE_H_
