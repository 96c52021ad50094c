// What solvers of sparse factors have in common, on any device.
#ifndef CROUT_KERNELS_SPARSE_SOLVER_H_
#define CROUT_KERNELS_SPARSE_SOLVER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/lu_algorithm.h"

namespace crout {

// Solves with what the SparseLu of the same name left, and with nothing else.
class SparseSolver : public TriangularSolver {
 public:
  // Of dense factors, which it cannot use.
  double PredictSeconds(DType, int64_t, int64_t) const final { return 0; }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, int64_t) const final {
    return absl::UnimplementedError("a solver of sparse factors alone");
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_SOLVER_H_
