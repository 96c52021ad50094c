// SPDX-License-Identifier: Apache-2.0

// Base class of solvers of sparse factors, on any device.
#ifndef CROUT_KERNELS_SPARSE_SOLVER_H_
#define CROUT_KERNELS_SPARSE_SOLVER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/lu_algorithm.h"

namespace crout {

// Solves only with factors of the SparseLu of the same name.
class SparseSolver : public TriangularSolver {
 public:
  // For dense factors, which are not supported.
  double PredictSeconds(DType, int64_t, int64_t) const final { return 0; }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, int64_t) const final {
    return absl::UnimplementedError("this solver supports only sparse factors");
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_SOLVER_H_
