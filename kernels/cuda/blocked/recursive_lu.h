// SPDX-License-Identifier: Apache-2.0

// The recursion that turns an LU method's panels into matrix products.
#ifndef CROUT_KERNELS_CUDA_BLOCKED_RECURSIVE_LU_H_
#define CROUT_KERNELS_CUDA_BLOCKED_RECURSIVE_LU_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/blocked/lu_product.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/matrix.h"
#include "kernels/stop_requested.h"

namespace crout::cuda {

// Recursive LU (Toledo 1997) of the columns of an n x n matrix in device memory. Factors the left
// half of the columns, computes the rows of U to their right, updates the right half by one
// product, and factors the right half. Half of all arithmetic is in one product, a quarter in two,
// and so on. Subclasses factor panels and solve with tiles. While an object lives, the context's
// cuBLAS handle reads its scalars from device memory. Calls enqueue on the context's stream.
template <class T>
class RecursiveLu {
 public:
  // Enqueues the initialization of `control`.
  static absl::Status Start(Context& context, LuControl<T>* control);

  // For the factorization of `a` in panels of at most `width` columns. `stop` is checked before
  // each panel.
  RecursiveLu(Context& context, const MatrixView<T>& a, LuControl<T>* control, int64_t width,
              StopRequested stop);
  virtual ~RecursiveLu() = default;
  RecursiveLu(const RecursiveLu&) = delete;  // owns the handle's pointer mode
  RecursiveLu& operator=(const RecursiveLu&) = delete;

  // Factors columns [begin, end) in rows [begin, n), from which the products with everything to the
  // left are already subtracted. Interchanges stay within these columns. Returns CANCELLED if
  // `stop` requests it. In that case it also signals the device to stop; the work already enqueued
  // runs to its end.
  absl::Status Factor(int64_t begin, int64_t end);

  // Applies the interchanges that Factor(begin, end) chose to the columns of b (n rows).
  virtual absl::Status Interchange(int64_t begin, int64_t end, const MatrixView<T>& b);

  // Rows [begin, end) of b (n rows) := L^-1 times these rows, with L the diagonal block of the same
  // rows.
  absl::Status SolveLower(int64_t begin, int64_t end, const MatrixView<T>& b);

  // Subtracts A[begin:end, from:to] times rows [from, to) of b from rows [begin, end) of c (n
  // rows).
  absl::Status Subtract(int64_t begin, int64_t end, int64_t from, int64_t to,
                        const MatrixView<T>& b, const MatrixView<T>& c);

 protected:
  // Factor for at most `width` columns.
  virtual absl::Status FactorPanel(int64_t begin, int64_t end) = 0;
  // SolveLower for at most kMaxSolveTile rows.
  virtual absl::Status SolveLowerTile(int64_t begin, int64_t end, const MatrixView<T>& b) = 0;

  Context& context() { return context_; }
  LuControl<T>* control() { return control_; }
  const MatrixView<T>& a() const { return a_; }
  MatrixView<T> Block(int64_t row, int64_t row_end, int64_t col, int64_t col_end) const {
    return {a_.data + row + col * a_.ld, row_end - row, col_end - col, a_.ld};
  }
  // The point at which to halve [begin, end): a multiple of `unit` from `begin`.
  static int64_t Middle(int64_t begin, int64_t end, int64_t unit);

 private:
  Context& context_;
  const DeviceScalars scalars_;
  const MatrixView<T> a_;
  LuControl<T>* const control_;
  const int64_t width_;
  const StopRequested stop_;
};

// The rows [begin, end) of b.
template <class T>
MatrixView<T> Rows(const MatrixView<T>& b, int64_t begin, int64_t end) {
  return {b.data + begin, end - begin, b.cols, b.ld};
}

// The columns [begin, end) of b.
template <class T>
MatrixView<T> Columns(const MatrixView<T>& b, int64_t begin, int64_t end) {
  return {b.data + begin * b.ld, b.rows, end - begin, b.ld};
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_BLOCKED_RECURSIVE_LU_H_
