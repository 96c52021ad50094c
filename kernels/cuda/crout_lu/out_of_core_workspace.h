// SPDX-License-Identifier: Apache-2.0

// Device memory of an out-of-core factorization.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_OUT_OF_CORE_WORKSPACE_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_OUT_OF_CORE_WORKSPACE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/crout_lu/lu_panel.h"
#include "kernels/cuda/crout_lu/out_of_core.h"
#include "kernels/scalar.h"

namespace crout::cuda {

// Offsets of the parts, in bytes.
struct OutOfCoreWorkspace {
  static OutOfCoreWorkspace For(const LuPanelKernels& kernels, const OutOfCoreBlocking& blocking,
                                DType dtype, int64_t n);

  int64_t ld = 0;           // leading dimension of block columns and pieces
  size_t control = 0;       // LuControl
  size_t plan = 0;          // InterchangePlan
  size_t ipiv = 0;          // n numbers
  size_t infos = 0;         // an int for each block column
  size_t sources = 0;       // for each block column, the row that moves to each row
  size_t resident[2] = {};  // block columns
  size_t staged[2] = {};    // pieces
  size_t split_left = 0;    // TF32 parts of a piece. This and the next are used only with `tf32`.
  size_t split_right = 0;   // TF32 parts of rows of U
  size_t lu = 0;            // workspace of EnqueueCroutLu for any block column
  size_t lu_bytes = 0;
  size_t bytes = 0;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_OUT_OF_CORE_WORKSPACE_H_
