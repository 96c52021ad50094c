// SPDX-License-Identifier: Apache-2.0

// Backward error of a solution, over the full range of numbers.
#ifndef CROUT_KERNELS_NUMERICS_RESIDUAL_CHECK_H_
#define CROUT_KERNELS_NUMERICS_RESIDUAL_CHECK_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/matrix.h"
#include "kernels/operators.h"

namespace crout {

// The system op(A) X = B with a changing X, and the memory of its residual.
struct CheckedSystem {
  const Operand* a = nullptr;
  Op op = Op::kNone;
  AnyMatrix x;  // n x nrhs, as b and r, in A's vector type (see Operand)
  AnyMatrix b;
  AnyMatrix r;
  // Receives |op(A)| |X| + |B|. If unset, the componentwise error is not computed.
  std::optional<MatrixView<double>> w;
};

// Defined in ResidualStats. `componentwise` is 0 if it was not computed.
struct BackwardErrors {
  double normwise = 0;
  double componentwise = 0;
};

// Borrows everything.
class ResidualCheck {
 public:
  ResidualCheck(ExecutionContext& context, const CheckedSystem& system);

  // Enqueues r := b - op(A) x and its errors.
  absl::Status Enqueue();

  // Reads the results of the last Enqueue; call after Synchronize(). If numbers near the end of the
  // range invalidated the residual, recomputes it in a wider range, which blocks; later residuals
  // use the wider range too.
  absl::Status Read();

  // Enqueue, Synchronize and Read.
  absl::Status Measure();

  // Returns the last errors read. NaN if X or another quantity involved was not finite.
  const BackwardErrors& errors() const { return errors_; }
  const CheckedSystem& system() const { return system_; }
  // Returns true if residuals are computed in the wider range because numbers are too near the end
  // of float64's range.
  bool wide_range() const { return wide_; }

 private:
  bool NeedsWideRange() const;  // checks the norm only
  absl::Status EnqueueWide();
  BackwardErrors Reported() const;

  ExecutionContext& context_;
  const CheckedSystem system_;
  bool wide_;
  BackwardErrors errors_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_RESIDUAL_CHECK_H_
