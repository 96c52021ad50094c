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

// Offsets are bytes from the workspace's start, where the IcmState lies.
struct PublishedPlan {
  int64_t n = 0;
  int64_t section = 0;
  int64_t sections = 0;  // along each side
  int block = 0;         // threads along each side
  PivotCriterion criterion;
  bool warm = false;

  size_t sweeps = 0;  // int32, sections^2
  size_t pivots = 0;  // int32, sections; and the next three
  size_t bad_elements = 0;
  size_t section_changed = 0;
  size_t section_nan = 0;
  size_t flags = 0;
  size_t permutations = 0;  // int64, 2 n
  size_t interchanges = 0;  // int32, 2 n
  size_t matrices[3] = {};  // n x n: A, sums, iterates
  size_t origin = 0;        // int32, n; this and the next of warm starts
  size_t scratch = 0;       // n elements for each multiprocessor
  size_t bytes = 0;
};

// INVALID_ARGUMENT for an n whose workspace has no valid size.
absl::StatusOr<PublishedPlan> PlanPublished(DType dtype, int64_t n, const LuParameters& parameters,
                                            bool pivoting, int multiprocessors);

// Enqueues the factorization, as LuAlgorithm::Factor. T: float, double, Complex of either.
template <class T>
absl::Status EnqueuePublished(Context& context, const PublishedPlan& plan, const MatrixView<T>& a,
                              int64_t* ipiv, std::span<std::byte> workspace,
                              const LuParameters& parameters);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_PUBLISHED_ICM_H_
