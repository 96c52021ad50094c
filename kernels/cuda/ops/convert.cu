// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/sparse_rows.cuh"

namespace crout::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;  // elements of one column per thread
constexpr int kTile = 32;
constexpr int kTileRows = 8;
constexpr int64_t kMaxGridY = 65535;

// Blocks cover the rows in x and the columns in y. If there are more columns than the grid's limit,
// the kernel strides over them.
dim3 ColumnGrid(int64_t rows, int64_t cols) {
  constexpr int64_t kRows = kThreads * kPerThread;
  return dim3(static_cast<unsigned>((rows + kRows - 1) / kRows),
              static_cast<unsigned>(std::min(cols, kMaxGridY)));
}

// Calls f(i, j) for the elements of this thread.
template <class F>
__device__ void ForEachElement(int64_t rows, int64_t cols, F f) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kPerThread + threadIdx.x;
  for (int64_t j = blockIdx.y; j < cols; j += gridDim.y) {
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int64_t i = first + k * kThreads;
      if (i < rows) f(i, j);
    }
  }
}

// Access to a matrix whose elements of type T are stored in place.
template <class T>
struct Elements {
  using Type = T;

  __device__ T Get(int64_t i, int64_t j) const { return m(i, j); }
  template <class From>
  __device__ void Set(int64_t i, int64_t j, From value) const {
    m(i, j) = static_cast<T>(value);
  }

  MatrixView<T> m;
};

// Access to a complex matrix that is stored as a real one of twice the columns: all real parts,
// then all imaginary parts.
template <class Part>
struct SplitElements {
  using Type = Complex<Part>;

  __device__ Type Get(int64_t i, int64_t j) const { return {real(i, j), imaginary(i, j)}; }
  template <class From>
  __device__ void Set(int64_t i, int64_t j, From value) const {
    real(i, j) = static_cast<Part>(value.re);
    imaginary(i, j) = static_cast<Part>(value.im);
  }

  MatrixView<Part> real;
  MatrixView<Part> imaginary;
};

// Evaluates (row_i in_ij) col_j, in this order.
template <class In, class Out>
__global__ void __launch_bounds__(kThreads)
    CopyScaledKernel(In in, int64_t rows, int64_t cols, const double* row, const double* col,
                     Out out) {
  ForEachElement(rows, cols, [&](int64_t i, int64_t j) {
    auto value = ToFloat64(in.Get(i, j));
    if (row != nullptr) value = value * row[i];
    if (col != nullptr) value = value * col[j];
    out.Set(i, j, value);
  });
}

// Stores the entries, one warp per column. The rest of `out` must already be zero.
template <class In, class Out>
__global__ void __launch_bounds__(kBlockThreads)
    ScatterKernel(SparseRows<In> columns, const double* row, const double* col,
                  MatrixView<Out> out) {
  const int64_t j = RowOfWarp();
  if (j >= columns.n) return;
  columns.ForEach(j, LaneOfWarp(), kWarp, [&](int64_t i, In v) {
    auto value = ToFloat64(v);
    if (row != nullptr) value = value * row[i];
    if (col != nullptr) value = value * col[j];
    out(i, j) = static_cast<Out>(value);
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads) AddKernel(MatrixView<T> d, MatrixView<T> x) {
  ForEachElement(x.rows, x.cols, [&](int64_t i, int64_t j) { x(i, j) += d(i, j); });
}

template <class T>
__global__ void __launch_bounds__(kThreads) ConjugateKernel(MatrixView<T> x) {
  ForEachElement(x.rows, x.cols, [&](int64_t i, int64_t j) { x(i, j) = Conjugate(x(i, j)); });
}

// Transposes through shared memory, so that both sides access whole cache lines. `in` is rows x
// cols.
template <class In, class Out>
__global__ void __launch_bounds__(kTile* kTileRows)
    TransposeKernel(In in, int64_t rows, int64_t cols, Out out, int64_t tiles_down) {
  using Element = typename Out::Type;
  __shared__ Element tile[kTile][kTile + 1];
  const int64_t i0 = (blockIdx.x % tiles_down) * kTile;
  const int64_t j0 = (blockIdx.x / tiles_down) * kTile;
  for (int k = threadIdx.y; k < kTile; k += kTileRows) {
    const int64_t i = i0 + threadIdx.x;
    const int64_t j = j0 + k;
    if (i < rows && j < cols) tile[k][threadIdx.x] = static_cast<Element>(in.Get(i, j));
  }
  __syncthreads();
  for (int k = threadIdx.y; k < kTile; k += kTileRows) {
    const int64_t i = i0 + k;
    const int64_t j = j0 + threadIdx.x;
    if (i < rows && j < cols) out.Set(j, i, tile[threadIdx.x][k]);
  }
}

// Contiguous matrices are copied as one column: short columns would leave most threads idle.
template <class T>
MatrixView<T> AsColumn(const MatrixView<T>& m) {
  return {m.data, m.rows * m.cols, 1, m.rows * m.cols};
}
template <class T>
Elements<T> AsColumn(const Elements<T>& e) {
  return {AsColumn(e.m)};
}
template <class Part>
SplitElements<Part> AsColumn(const SplitElements<Part>& e) {
  return {AsColumn(e.real), AsColumn(e.imaginary)};
}

template <class T>
SplitElements<T> Split(const MatrixView<T>& m) {
  const int64_t cols = m.cols / 2;
  return {{m.data, m.rows, cols, m.ld}, {m.data + cols * m.ld, m.rows, cols, m.ld}};
}

// Calls f(in, out) with access to both matrices. If exactly one is complex, the real one has the
// same shape (as `in` only) or twice the columns and holds the parts (Split).
template <class F>
void DispatchElements(const AnyMatrix& in, const AnyMatrix& out, F f) {
  const bool same_size = in.rows * in.cols == out.rows * out.cols;
  DispatchDevice(in.dtype, [&](auto in_tag) {
    using In = typename decltype(in_tag)::type;
    DispatchDevice(out.dtype, [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      const Elements<In> from{in.As<In>()};
      const Elements<Out> to{out.As<Out>()};
      if constexpr (kIsComplex<In> && !kIsComplex<Out>) {
        f(from, Split(to.m));
      } else if constexpr (!kIsComplex<In> && kIsComplex<Out>) {
        same_size ? f(from, to) : f(Split(from.m), to);
      } else {
        f(from, to);
      }
    });
  });
}

}  // namespace

cudaError_t LaunchCopy(const AnyMatrix& in, const AnyMatrix& out, cudaStream_t stream) {
  if (in.rows == 0 || in.cols == 0) return cudaSuccess;
  const int64_t cols = std::min(in.cols, out.cols);
  const bool plain = in.ld == in.rows && out.ld == out.rows;
  DispatchElements(in, out, [&](const auto& from, const auto& to) {
    if (plain) {
      const int64_t count = in.rows * cols;
      CopyScaledKernel<<<ColumnGrid(count, 1), kThreads, 0, stream>>>(
          AsColumn(from), count, 1, nullptr, nullptr, AsColumn(to));
    } else {
      CopyScaledKernel<<<ColumnGrid(in.rows, cols), kThreads, 0, stream>>>(from, in.rows, cols,
                                                                           nullptr, nullptr, to);
    }
  });
  return cudaGetLastError();
}

cudaError_t LaunchCopyScaled(const AnyMatrix& in, const double* row, const double* col,
                             const AnyMatrix& out, cudaStream_t stream) {
  if (row == nullptr && col == nullptr) return LaunchCopy(in, out, stream);
  if (in.rows == 0 || in.cols == 0) return cudaSuccess;
  DispatchElements(in, out, [&](const auto& from, const auto& to) {
    CopyScaledKernel<<<ColumnGrid(in.rows, in.cols), kThreads, 0, stream>>>(from, in.rows, in.cols,
                                                                            row, col, to);
  });
  return cudaGetLastError();
}

cudaError_t LaunchDensify(const AnySparse& in, const double* row, const double* col,
                          const AnyMatrix& out, cudaStream_t stream) {
  if (in.n == 0) return cudaSuccess;
  const size_t bytes = SizeOf(out.dtype);
  const cudaError_t code =
      cudaMemset2DAsync(out.data, out.ld * bytes, 0, in.n * bytes, in.n, stream);
  if (code != cudaSuccess) return code;
  DispatchDevice(in.dtype, [&](auto in_tag) {
    using In = typename decltype(in_tag)::type;
    DispatchDevice(out.dtype, [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      if constexpr (kIsComplex<In> == kIsComplex<Out>) {
        ScatterKernel<<<BlocksOfWarps(in.n), kBlockThreads, 0, stream>>>(
            SparseRows<In>::ForOp(in, Op::kTranspose), row, col, out.As<Out>());
      }
    });
  });
  return cudaGetLastError();
}

cudaError_t LaunchTranspose(const AnyMatrix& in, const AnyMatrix& out, cudaStream_t stream) {
  if (in.rows == 0 || in.cols == 0) return cudaSuccess;
  const int64_t rows = std::min(in.rows, out.cols);
  const int64_t cols = std::min(in.cols, out.rows);
  const int64_t down = (rows + kTile - 1) / kTile;
  const auto blocks = static_cast<unsigned>(down * ((cols + kTile - 1) / kTile));
  DispatchElements(in, out, [&](const auto& from, const auto& to) {
    TransposeKernel<<<blocks, dim3(kTile, kTileRows), 0, stream>>>(from, rows, cols, to, down);
  });
  return cudaGetLastError();
}

cudaError_t LaunchAdd(const AnyMatrix& d, const AnyMatrix& x, cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return cudaSuccess;
  DispatchWide(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    AddKernel<<<ColumnGrid(x.rows, x.cols), kThreads, 0, stream>>>(d.As<T>(), x.As<T>());
  });
  return cudaGetLastError();
}

cudaError_t LaunchConjugate(const AnyMatrix& x, cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return cudaSuccess;
  DispatchDevice(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsComplex<T>) {
      ConjugateKernel<<<ColumnGrid(x.rows, x.cols), kThreads, 0, stream>>>(x.As<T>());
    }
  });
  return cudaGetLastError();
}

}  // namespace crout::cuda
