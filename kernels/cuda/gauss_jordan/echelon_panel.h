// A panel of columns on its way to reduced row echelon form, and what it does to the others.
#ifndef CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_PANEL_H_
#define CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_PANEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/host_line.h"
#include "kernels/matrix.h"

namespace crout::cuda {

inline constexpr int64_t kEchelonPanel = 32;  // columns at most

// In device memory; zero before the first panel. One kernel after the other reads and writes it.
struct EchelonState {
  int64_t rank;                         // pivots so far
  int64_t base;                         // of them before this panel
  int32_t found;                        // in this panel
  int32_t has_pivot;                    // the column that was searched last
  int32_t stopped;                      // the host asked for it
  int32_t rejected;                     // whether a column had candidates, and no pivot
  double least_pivot;                   // Abs1, where rank > 0
  double largest_rejected;              // of the candidates of columns without a pivot
  int64_t interchanges[kEchelonPanel];  // row base + k was exchanged with this one
};

// Columns [begin, end) of a. With V, `transform`, rows x kEchelonPanel and zero on entry, and E the
// rows of the panel's pivots, the panel's work on any column x is: rows interchanged, then
// x := x + V x[E] with x[E] zero first.
template <class T>
struct EchelonPanel {
  MatrixView<T> a;
  int64_t begin = 0;
  int64_t end = 0;
  double tolerance = 0;
  bool follows_growth = false;  // PivotTolerance
  T* transform = nullptr;
  T* pivot_row = nullptr;  // 2 kEchelonPanel elements
  T* rows = nullptr;       // kEchelonPanel x a.cols: -x[E] of the columns from `end` on
  int64_t* pivot_columns = nullptr;
  EchelonState* state = nullptr;
  HostLine host;
};

// Enqueues the reduction of the panel's own columns.
template <class T>
cudaError_t LaunchEchelonPanel(const EchelonPanel<T>& panel, cudaStream_t stream);

// Enqueues the interchanges of the columns from `end` on, and moves their pivot rows to `rows`.
template <class T>
cudaError_t LaunchEchelonRows(const EchelonPanel<T>& panel, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_PANEL_H_
