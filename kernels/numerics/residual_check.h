// The backward error of a solution, whatever the range of its numbers.
#ifndef CROUT_KERNELS_NUMERICS_RESIDUAL_CHECK_H_
#define CROUT_KERNELS_NUMERICS_RESIDUAL_CHECK_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/matrix.h"
#include "kernels/operand.h"

namespace crout {

// op(A) X = B with an X that may change, and the memory that a residual takes.
struct CheckedSystem {
  const Operand* a = nullptr;
  Op op = Op::kNone;
  AnyMatrix x;  // n x nrhs, as the others, in the wide type of A's: see Operand
  AnyMatrix b;
  AnyMatrix r;
  // Where |op(A)| |X| + |B| goes; unset: the componentwise error is not asked for.
  std::optional<MatrixView<double>> w;
};

// As ResidualStats has them; the second is 0 where it was not asked for.
struct BackwardErrors {
  double normwise = 0;
  double componentwise = 0;
};

// Borrows everything.
class ResidualCheck {
 public:
  ResidualCheck(ExecutionContext& context, const CheckedSystem& system);

  // Enqueues r := b - op(A) x and its figures.
  absl::Status Enqueue();

  // Keeps what the last Enqueue found; call it after Synchronize(). Where numbers near the end of
  // the range spoilt the residual it is taken anew in a wider one, which blocks, and so from then
  // on.
  absl::Status Read();

  // Enqueue, Synchronize and Read.
  absl::Status Measure();

  // What was read last. NaN if X, or what is asked for beside it, was not finite.
  const BackwardErrors& errors() const { return errors_; }
  const CheckedSystem& system() const { return system_; }
  // Whether residuals are taken in the wider range, since numbers are too near the end of
  // float64's.
  bool wide_range() const { return wide_; }

 private:
  bool NeedsWideRange() const;  // for the norm alone
  absl::Status EnqueueWide();
  BackwardErrors Reported() const;

  ExecutionContext& context_;
  const CheckedSystem system_;
  bool wide_;
  BackwardErrors errors_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_RESIDUAL_CHECK_H_
