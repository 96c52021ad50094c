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

// Recursive LU (Toledo 1997) of the columns of an n x n matrix in device memory: the left half of
// the columns, the rows of U to their right, one product, the right half. Half of all arithmetic is
// in one product, a quarter in two, and so on. A method says how it factors a panel and solves with
// a tile. While one lives the context's cuBLAS handle reads its scalars from device memory; calls
// enqueue on the context's stream.
template <class T>
class RecursiveLu {
 public:
  // Enqueues the start of `control`.
  static absl::Status Start(Context& context, LuControl<T>* control);

  // For the factorization of `a` in panels of at most `width` columns. `stop` is asked before each.
  RecursiveLu(Context& context, const MatrixView<T>& a, LuControl<T>* control, int64_t width,
              StopRequested stop);
  virtual ~RecursiveLu() = default;
  RecursiveLu(const RecursiveLu&) = delete;  // It holds the handle's mode.
  RecursiveLu& operator=(const RecursiveLu&) = delete;

  // Factors the columns [begin, end) of the rows [begin, n), from which everything to the left is
  // subtracted already; interchanges stay within these columns. CANCELLED when asked to stop: the
  // device was told, and what is enqueued runs out.
  absl::Status Factor(int64_t begin, int64_t end);

  // The same interchanges as Factor(begin, end) chose, for the columns of b (n rows).
  virtual absl::Status Interchange(int64_t begin, int64_t end, const MatrixView<T>& b);

  // Rows [begin, end) of b (n rows) := L^-1 of them, L the diagonal block of these rows.
  absl::Status SolveLower(int64_t begin, int64_t end, const MatrixView<T>& b);

  // Rows [begin, end) of c (n rows) minus A[these rows, [from, to)] times rows [from, to) of b.
  absl::Status Subtract(int64_t begin, int64_t end, int64_t from, int64_t to,
                        const MatrixView<T>& b, const MatrixView<T>& c);

 protected:
  // Columns [begin, end), at most `width`, as Factor.
  virtual absl::Status FactorPanel(int64_t begin, int64_t end) = 0;
  // SolveLower for at most kMaxSolveTile rows.
  virtual absl::Status SolveLowerTile(int64_t begin, int64_t end, const MatrixView<T>& b) = 0;

  Context& context() { return context_; }
  LuControl<T>* control() { return control_; }
  const MatrixView<T>& a() const { return a_; }
  MatrixView<T> Block(int64_t row, int64_t row_end, int64_t col, int64_t col_end) const {
    return {a_.data + row + col * a_.ld, row_end - row, col_end - col, a_.ld};
  }
  // Where [begin, end) is halved: a multiple of `unit` from its begin.
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
