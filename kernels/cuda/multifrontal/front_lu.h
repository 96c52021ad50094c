// The factorization of assembled fronts.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_LU_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_LU_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/cuda/irr_lu/lu_kernels.h"
#include "kernels/cuda/multifrontal/assembly.h"
#include "kernels/cuda/multifrontal/level_plan.h"
#include "kernels/cuda/multifrontal/traversal.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// Where fronts are while they are factored; in device memory, but for the first two.
template <class T>
struct FrontMemory {
  const Analysis* analysis = nullptr;
  std::span<const int32_t> fronts;  // that `order` is of, in host memory
  T* factor = nullptr;
  T* contributions = nullptr;
  FrontMembers members;
  const int32_t* order = nullptr;  // what batches are ranges of
  int64_t* ipiv = nullptr;         // by position; as LAPACK's within a front
  int32_t* info = nullptr;         // by front; what is there says nothing
  LeastPivots<T> least;            // by position
  std::span<std::byte> workspace;  // FrontLuWorkspaceBytes()
  std::span<std::byte> cublas;     // FrontLuCublasBytes()
};

// Device memory for all batches of the plan that are factored; the second for cuBLAS on a lane
// beside the context's.
size_t FrontLuWorkspaceBytes(const LuPanelKernels& kernels, const Analysis& analysis,
                             const LevelPlan& plan, DType dtype);

size_t FrontLuCublasBytes(const LevelPlan& plan);

// Enqueues P F11 = L11 U11, U12, L21 and F22 - L21 U12 of the assembled fronts of a batch of a
// step. Where few fronts are large, crout_lu factors one after the other, and raises no pivots;
// `careful`: pivots that are too small are raised in every front. CANCELLED by `stop`.
template <class T>
absl::Status EnqueueFrontLu(Context& context, const LuPanelKernels& kernels,
                            const FrontMemory<T>& memory, const TraversalStep& step,
                            const FrontBatch& batch, bool careful, const StopRequested& stop);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_LU_H_
