// SPDX-License-Identifier: Apache-2.0

// Reduces a panel of columns to row echelon form and applies the panel to other columns.
#ifndef CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_PANEL_H_
#define CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_PANEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/host_signals.h"
#include "kernels/matrix.h"

namespace crout::cuda {

inline constexpr int64_t kEchelonPanel = 32;  // maximum columns of a panel

// In device memory; zero before the first panel. Successive kernels read and write it.
struct EchelonState {
  int64_t rank;                         // pivots so far
  int64_t base;                         // pivots before this panel
  int32_t found;                        // pivots in this panel
  int32_t has_pivot;                    // whether the last searched column has a pivot
  int32_t stopped;                      // the host requested a stop
  int32_t rejected;                     // whether a column had candidates but no pivot
  double least_pivot;                   // smallest pivot by Abs1, valid if rank > 0
  double largest_rejected;              // largest candidate of columns without a pivot
  double max_abs_u;                     // EchelonForm::max_abs_u
  int64_t interchanges[kEchelonPanel];  // row base + k was exchanged with row interchanges[k]
};

// Columns [begin, end) of a. `transform` is the matrix V: rows x kEchelonPanel, zero on entry. Let
// E be the rows of the panel's pivots. The panel transforms any column x as follows: it
// interchanges rows, saves x[E], sets x[E] to zero, and adds V times the saved x[E] to x. Row k of
// `pivot_transforms` is V's row of pivot k when that pivot was chosen; only its first k elements
// are set. U's element in row k of column x is x[E][k] plus that row times x[E].
template <class T>
struct EchelonPanel {
  MatrixView<T> a;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t eligible = 0;  // columns that may have pivots
  double tolerance = 0;
  bool follows_growth = false;  // see PivotTolerance
  T* transform = nullptr;
  T* pivot_row = nullptr;         // 2 kEchelonPanel elements
  T* pivot_transforms = nullptr;  // kEchelonPanel x kEchelonPanel, by rows
  T* rows = nullptr;              // kEchelonPanel x a.cols: -x[E] of the columns from `end` on
  int64_t* pivot_columns = nullptr;
  EchelonState* state = nullptr;
  HostSignals host;
};

// Enqueues the reduction of the panel's own columns.
template <class T>
cudaError_t LaunchEchelonPanel(const EchelonPanel<T>& panel, cudaStream_t stream);

// Enqueues the panel's interchanges in the columns from `end` on, and moves the pivot rows of these
// columns to `rows`. Includes the elements of U in these columns in EchelonState::max_abs_u.
template <class T>
cudaError_t LaunchEchelonRows(const EchelonPanel<T>& panel, cudaStream_t stream);

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_GAUSS_JORDAN_ECHELON_PANEL_H_
