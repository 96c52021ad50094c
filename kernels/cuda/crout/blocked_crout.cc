// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout/blocked_crout.h"

#include "absl/strings/str_cat.h"
#include "kernels/cuda/blocked/tiles.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"

namespace crout::cuda {
namespace {

// Offsets in the workspace; both keep the following part aligned.
constexpr size_t kPlanOffset = 256;
constexpr size_t kScratchOffset = kPlanOffset + sizeof(InterchangePlan);

}  // namespace

template <class T>
size_t BlockedCrout<T>::WorkspaceBytes(int64_t n, int width) {
  return kScratchOffset + PcmPanelKernels::ScratchBytes(kDTypeOf<T>, n, width);
}

template <class T>
absl::StatusOr<LuControl<T>*> BlockedCrout<T>::Start(Context& context, int64_t n, int width,
                                                     std::span<std::byte> workspace) {
  const size_t needed = WorkspaceBytes(n, width);
  if (workspace.size() < needed) {
    return absl::InternalError(absl::StrCat("Crout's method needs ", needed,
                                            " bytes of workspace, got ", workspace.size()));
  }
  CROUT_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(workspace.data(), 0, needed, context.stream()));
  auto* control = reinterpret_cast<LuControl<T>*>(workspace.data());
  CROUT_RETURN_IF_ERROR(RecursiveLu<T>::Start(context, control));
  return control;
}

template <class T>
BlockedCrout<T>::BlockedCrout(Context& context, const PcmPanelKernels& kernels,
                              const MatrixView<T>& a, int64_t* ipiv, std::span<std::byte> workspace,
                              const Options& options, StopRequested stop)
    : RecursiveLu<T>(context, a, reinterpret_cast<LuControl<T>*>(workspace.data()), options.width,
                     stop),
      kernels_(kernels),
      ipiv_(ipiv),
      plan_(reinterpret_cast<InterchangePlan*>(workspace.data() + kPlanOffset)),
      scratch_(workspace.data() + kScratchOffset),
      options_(options) {}

template <class T>
absl::Status BlockedCrout<T>::FactorPanel(int64_t begin, int64_t end) {
  PcmPanel<T> panel;
  panel.a = this->Block(begin, this->a().rows, begin, end);
  panel.begin = begin;
  panel.ipiv = ipiv_;
  panel.pivoting = options_.pivoting;
  panel.control = this->control();
  panel.host = HostSignals(this->context().report());
  panel.scratch = scratch_;
  CROUT_RETURN_IF_CUDA_ERROR(kernels_.Launch(panel, options_.width, this->context().stream()));
  return absl::OkStatus();
}

template <class T>
absl::Status BlockedCrout<T>::Interchange(int64_t begin, int64_t end, const MatrixView<T>& b) {
  if (options_.pivoting.rule == PivotRule::kNone) return absl::OkStatus();
  CROUT_RETURN_IF_CUDA_ERROR(LaunchInterchangeRows(b, ipiv_, begin, end, plan_, this->control(),
                                                   this->context().stream()));
  return absl::OkStatus();
}

template <class T>
absl::Status BlockedCrout<T>::SolveLowerTile(int64_t begin, int64_t end, const MatrixView<T>& b) {
  CROUT_RETURN_IF_CUDA_ERROR(LaunchSolveTile(TileSolve::kLower, this->Block(begin, end, begin, end),
                                             Rows(b, begin, end), this->control(),
                                             this->context().stream()));
  return absl::OkStatus();
}

template <class T>
absl::Status BlockedCrout<T>::SolveUpper(int64_t begin, int64_t end, const MatrixView<T>& b) {
  if (begin == end || b.cols == 0) return absl::OkStatus();
  if (end - begin > kMaxSolveTile<T>) {
    const int64_t middle = this->Middle(begin, end, kMaxSolveTile<T>);
    CROUT_RETURN_IF_ERROR(SolveUpper(middle, end, b));
    CROUT_RETURN_IF_ERROR(this->Subtract(begin, middle, middle, end, b, b));
    return SolveUpper(begin, middle, b);
  }
  CROUT_RETURN_IF_CUDA_ERROR(
      LaunchSolveTile(TileSolve::kUnitUpper, this->Block(begin, end, begin, end),
                      Rows(b, begin, end), this->control(), this->context().stream()));
  return absl::OkStatus();
}

template class BlockedCrout<float>;
template class BlockedCrout<double>;
template class BlockedCrout<Complex<float>>;
template class BlockedCrout<Complex<double>>;

}  // namespace crout::cuda
