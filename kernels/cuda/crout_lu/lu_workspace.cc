// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/lu_workspace.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/crout_lu/block_row.h"
#include "kernels/cuda/crout_lu/crout_lu.h"
#include "kernels/cuda/crout_lu/deferred_interchanges.h"
#include "kernels/cuda/crout_lu/tf32_product.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_context.h"

namespace crout::cuda {
namespace {

size_t PlanBytes(DType dtype) {
  return DispatchDevice(
      dtype, [](auto tag) { return sizeof(BlockRowPlan<typename decltype(tag)::type>); });
}

}  // namespace

LuWorkspace LuWorkspace::For(const LuPanelKernels& kernels, const LuBlocking& blocking, DType dtype,
                             int64_t m, int64_t columns) {
  LuWorkspace w;
  size_t end = w.plans + kPlans * PlanBytes(dtype);
  const auto place = [&end](bool used, size_t bytes) {
    const size_t begin = (end + kAlignment - 1) / kAlignment * kAlignment;
    end = begin + (used ? bytes : 0);
    return begin;
  };
  const PanelLayout panels = blocking.panels(columns);
  w.cublas = place(blocking.look_ahead, Context::kCublasWorkspaceBytes);
  w.deferred = place(blocking.look_ahead, DeferredInterchangesBytes(dtype, m, panels));
  const int64_t width = panels.EndOf(0);
  w.split = place(blocking.tf32, Tf32LeftBytes(dtype, m, width));
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  w.split_trailing = place(blocking.tf32, Tf32RightBytes(dtype, m, width, kAny));
  w.split_next = place(blocking.tf32, Tf32RightBytes(dtype, m, width, width));
  w.scratch = place(true, kernels.ScratchBytes(dtype, m));
  w.bytes = end;
  return w;
}

size_t CroutLuWorkspaceBytes(const LuPanelKernels& kernels, const LuBlocking& blocking, DType dtype,
                             int64_t m, int64_t columns) {
  return LuWorkspace::For(kernels, blocking, dtype, m, columns).bytes;
}

size_t MaxCroutLuWorkspaceBytes(const LuPanelKernels& kernels, DType dtype, int64_t m,
                                int64_t columns) {
  // Every bound in LuBlocking is a multiple of kUnit, and between two bounds the workspace grows
  // with the number of columns.
  constexpr int64_t kUnit = 256;
  size_t most = 0;
  for (int64_t unit = 0; unit < columns; unit += kUnit) {
    const int64_t least = std::min(unit + kUnit, columns);
    most = std::max(most,
                    CroutLuWorkspaceBytes(kernels, LuBlocking::For(dtype, least), dtype, m, least));
  }
  // The panels' scratch memory alone may be larger for fewer rows.
  size_t scratch = 0;
  for (int64_t unit = 0; unit < m; unit += kUnit) {
    scratch = std::max(scratch, kernels.ScratchBytes(dtype, std::min(unit + kUnit, m)));
  }
  return most + scratch;
}

}  // namespace crout::cuda
