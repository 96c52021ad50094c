// Applies a block elimination to a random vector: how far a Schur complement can be trusted.
#ifndef CROUT_KERNELS_NUMERICS_SCHUR_PROBE_H_
#define CROUT_KERNELS_NUMERICS_SCHUR_PROBE_H_

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
  // A of order n and its leading block of order 0 < k < n. `work`: kSchurProbeVectors * n float64
  // in device memory.
  SchurProbe(ExecutionContext& context, const MatrixStats& a, int64_t n, int64_t k, double* work);

  // Enqueues the products of A (n x n) and of X (k x n - k).
  absl::Status Start(const AnyMatrix& a, const AnyMatrix& x);
  // Enqueues that of S (n - k x n - k).
  absl::Status Finish(const AnyMatrix& s);
  // Blocks.
  absl::StatusOr<double> BackwardError();

 private:
  // One of the vectors of `work`, from element `row` on.
  MatrixView<double> Vector(int which, int64_t row, int64_t rows) const {
    return {work_ + which * n_ + row, rows, 1, n_};
  }
  // out := -m x.
  absl::Status Multiply(const AnyMatrix& m, const MatrixView<double>& x,
                        const MatrixView<double>& out);

  ExecutionContext& context_;
  const double norm_inf_;
  const int64_t n_;
  const int64_t k_;
  double* const work_;
  std::vector<double> host_;  // zeros and z, then what BackwardError reads
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_SCHUR_PROBE_H_
