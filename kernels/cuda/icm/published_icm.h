// SPDX-License-Identifier: Apache-2.0

// The published variant of the iterative Crout method: its workspace, and its launches.
#ifndef CROUT_KERNELS_CUDA_ICM_PUBLISHED_ICM_H_
#define CROUT_KERNELS_CUDA_ICM_PUBLISHED_ICM_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// Offsets are in bytes from the start of the workspace, which holds the IcmState.
struct PublishedPlan {
  int64_t n = 0;
  int64_t section = 0;
  int64_t sections = 0;  // per side
  int block = 0;         // threads per side
  PivotCriterion criterion;
  bool warm = false;

  size_t sweeps = 0;  // int32, sections^2
  size_t pivots = 0;  // int32, sections; like the next three
  size_t bad_elements = 0;
  size_t section_changed = 0;
  size_t section_nan = 0;
  size_t flags = 0;
  size_t permutations = 0;  // int64, 2 n
  size_t interchanges = 0;  // int32, 2 n
  size_t matrices[3] = {};  // n x n: A, sums, iterates
  size_t origin = 0;        // int32, n; this and the next are for warm starts only
  size_t scratch = 0;       // n elements per multiprocessor
  size_t bytes = 0;
};

// INVALID_ARGUMENT if n is too large for a valid workspace size.
absl::StatusOr<PublishedPlan> PlanPublished(DType dtype, int64_t n, const LuParameters& parameters,
                                            bool pivoting, int multiprocessors);

// Enqueues the factorization with the contract of LuAlgorithm::Factor. T: float, double, or Complex
// of either.
template <class T>
absl::Status EnqueuePublished(Context& context, const PublishedPlan& plan, const MatrixView<T>& a,
                              int64_t* ipiv, std::span<std::byte> workspace,
                              const LuParameters& parameters);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_PUBLISHED_ICM_H_
