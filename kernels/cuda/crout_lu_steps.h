// Crout's method, direct and blocked, as steps of the recursion.
#ifndef CROUT_KERNELS_CUDA_CROUT_LU_STEPS_H_
#define CROUT_KERNELS_CUDA_CROUT_LU_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/crout_panel.h"
#include "kernels/cuda/interchange_rows.h"
#include "kernels/cuda/recursive_lu.h"

namespace crout {

// PA = LU with the unit diagonal in U. The panels are CroutPanelKernels'.
template <class T>
class CroutLuSteps final : public RecursiveLu<T> {
 public:
  struct Options {
    int width = CroutPanelKernels::kMaxWidth;  // from CroutPanelKernels::WidthFor
    PivotCriterion pivoting;
  };

  // Device memory for a matrix of order n.
  static size_t WorkspaceBytes(int64_t n, int width);
  // Enqueues the start; returns the control, which lies in the workspace.
  static absl::StatusOr<LuControl<T>*> Start(CudaContext& context, int64_t n, int width,
                                             std::span<std::byte> workspace);

  // ipiv: a.rows elements. `workspace` was started.
  CroutLuSteps(CudaContext& context, const CroutPanelKernels& kernels, const MatrixView<T>& a,
               int64_t* ipiv, std::span<std::byte> workspace, const Options& options,
               StopRequested stop);

  absl::Status Interchange(int64_t begin, int64_t end, const MatrixView<T>& b) override;

  // Rows [begin, end) of b (n rows) := U^-1 of them, U the diagonal block of these rows.
  absl::Status SolveUpper(int64_t begin, int64_t end, const MatrixView<T>& b);

 private:
  absl::Status FactorPanel(int64_t begin, int64_t end) override;
  absl::Status SolveLowerTile(int64_t begin, int64_t end, const MatrixView<T>& b) override;

  const CroutPanelKernels& kernels_;
  int64_t* const ipiv_;
  InterchangePlan* const plan_;
  std::byte* const scratch_;
  const Options options_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_CROUT_LU_STEPS_H_
