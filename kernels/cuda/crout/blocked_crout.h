// SPDX-License-Identifier: Apache-2.0

// Crout's method, direct and blocked: the steps of the recursion in recursive_lu.h.
#ifndef CROUT_KERNELS_CUDA_CROUT_BLOCKED_CROUT_H_
#define CROUT_KERNELS_CUDA_CROUT_BLOCKED_CROUT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/blocked/recursive_lu.h"
#include "kernels/cuda/crout/pcm_panel.h"

namespace crout::cuda {

// PA = LU with the unit diagonal in U. PcmPanelKernels factors the panels.
template <class T>
class BlockedCrout final : public RecursiveLu<T> {
 public:
  struct Options {
    int width = PcmPanelKernels::kMaxWidth;  // a width that PcmPanelKernels::WidthFor returned
    PivotCriterion pivoting;
  };

  // Bytes of device memory for a matrix of order n.
  static size_t WorkspaceBytes(int64_t n, int width);
  // Enqueues the initialization of the workspace. Returns the control, which lies in the workspace.
  static absl::StatusOr<LuControl<T>*> Start(Context& context, int64_t n, int width,
                                             std::span<std::byte> workspace);

  // `ipiv` has a.rows elements. `workspace` must have been passed to Start().
  BlockedCrout(Context& context, const PcmPanelKernels& kernels, const MatrixView<T>& a,
               int64_t* ipiv, std::span<std::byte> workspace, const Options& options,
               StopRequested stop);

  absl::Status Interchange(int64_t begin, int64_t end, const MatrixView<T>& b) override;

  // Rows [begin, end) of b (n rows) := U^-1 times these rows, with U the diagonal block of the same
  // rows.
  absl::Status SolveUpper(int64_t begin, int64_t end, const MatrixView<T>& b);

 private:
  absl::Status FactorPanel(int64_t begin, int64_t end) override;
  absl::Status SolveLowerTile(int64_t begin, int64_t end, const MatrixView<T>& b) override;

  const PcmPanelKernels& kernels_;
  int64_t* const ipiv_;
  InterchangePlan* const plan_;
  std::byte* const scratch_;
  const Options options_;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_CROUT_BLOCKED_CROUT_H_
