// SPDX-License-Identifier: Apache-2.0

// Factors assembled fronts.
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

// The memory of fronts during their factorization. All pointers but `analysis` are to device
// memory.
template <class T>
struct FrontMemory {
  const Analysis* analysis = nullptr;
  std::span<const int32_t> fronts;  // the host copy of `order`'s array
  T* factor = nullptr;
  T* contributions = nullptr;
  FrontMembers members;
  const int32_t* order = nullptr;  // batches are ranges of it
  int64_t* ipiv = nullptr;         // by position; 1-based within a front, like LAPACK's
  int32_t* info = nullptr;         // by front; the values are not used
  MinPivots<T> least;              // by position
  std::span<std::byte> workspace;  // FrontLuWorkspaceBytes()
  std::span<std::byte> cublas;     // FrontLuCublasBytes()
};

// Bytes of device memory for all batches of the plan that are factored. FrontLuCublasBytes is for
// cuBLAS on a queue beside the context's.
size_t FrontLuWorkspaceBytes(const LuPanelKernels& kernels, const Analysis& analysis,
                             const LevelPlan& plan, DType dtype);

size_t FrontLuCublasBytes(const LevelPlan& plan);

// Enqueues P F11 = L11 U11, U12, L21 and F22 - L21 U12 of the assembled fronts of a batch in a
// step. If the batch has few fronts and these are large, crout_lu factors them one by one and does
// not perturb pivots. With `careful`, pivots that are too small are perturbed in every front.
// CANCELLED if `stop` requests it.
template <class T>
absl::Status EnqueueFrontLu(Context& context, const LuPanelKernels& kernels,
                            const FrontMemory<T>& memory, const TraversalStep& step,
                            const FrontBatch& batch, bool careful, const StopRequested& stop);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FRONT_LU_H_
