// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/blocked/recursive_lu.h"

#include "kernels/cuda/blocked/tiles.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

template <class T>
absl::Status RecursiveLu<T>::Start(Context& context, LuControl<T>* control) {
  context.report().stop = 0;
  CROUT_RETURN_IF_CUDA_ERROR(LaunchStartLu(control, context.stream()));
  return absl::OkStatus();
}

template <class T>
RecursiveLu<T>::RecursiveLu(Context& context, const MatrixView<T>& a, LuControl<T>* control,
                            int64_t width, StopRequested stop)
    : context_(context),
      scalars_(context.cublas()),
      a_(a),
      control_(control),
      width_(width),
      stop_(stop) {}

template <class T>
int64_t RecursiveLu<T>::Middle(int64_t begin, int64_t end, int64_t unit) {
  const int64_t units = (end - begin + unit - 1) / unit;
  return begin + units / 2 * unit;
}

template <class T>
absl::Status RecursiveLu<T>::Factor(int64_t begin, int64_t end) {
  if (begin == end) return absl::OkStatus();
  if (end - begin <= width_) {
    const absl::Status status = CheckNotStopped(stop_);
    if (status.ok()) return FactorPanel(begin, end);
    context_.report().stop = 1;
    return status;
  }
  const int64_t middle = Middle(begin, end, width_);
  const MatrixView<T> left = Columns(a_, begin, middle);
  const MatrixView<T> right = Columns(a_, middle, end);
  CROUT_RETURN_IF_ERROR(Factor(begin, middle));
  CROUT_RETURN_IF_ERROR(Interchange(begin, middle, right));
  CROUT_RETURN_IF_ERROR(SolveLower(begin, middle, right));
  CROUT_RETURN_IF_ERROR(Subtract(middle, a_.rows, begin, middle, right, right));
  CROUT_RETURN_IF_ERROR(Factor(middle, end));
  return Interchange(middle, end, left);
}

template <class T>
absl::Status RecursiveLu<T>::Interchange(int64_t, int64_t, const MatrixView<T>&) {
  return absl::OkStatus();
}

template <class T>
absl::Status RecursiveLu<T>::SolveLower(int64_t begin, int64_t end, const MatrixView<T>& b) {
  if (begin == end || b.cols == 0) return absl::OkStatus();
  if (end - begin <= kMaxSolveTile<T>) return SolveLowerTile(begin, end, b);
  const int64_t middle = Middle(begin, end, kMaxSolveTile<T>);
  CROUT_RETURN_IF_ERROR(SolveLower(begin, middle, b));
  CROUT_RETURN_IF_ERROR(Subtract(middle, end, begin, middle, b, b));
  return SolveLower(middle, end, b);
}

template <class T>
absl::Status RecursiveLu<T>::Subtract(int64_t begin, int64_t end, int64_t from, int64_t to,
                                      const MatrixView<T>& b, const MatrixView<T>& c) {
  return SubtractLuProduct(context_.cublas(), *control_, Block(begin, end, from, to),
                           Rows(b, from, to), Rows(c, begin, end));
}

template class RecursiveLu<float>;
template class RecursiveLu<double>;
template class RecursiveLu<Complex<float>>;
template class RecursiveLu<Complex<double>>;

}  // namespace crout::cuda
