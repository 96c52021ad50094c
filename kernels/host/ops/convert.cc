// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/matrix_functions.h"

#include <algorithm>

#include "kernels/host/device/parallel_for.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

constexpr int64_t kTile = 32;  // Two tiles of float64 fit into the L1 cache.

// Calls assign(out(i, j), in(i, j)) for all elements.
template <class From, class To, class Assign>
void CopyColumns(int cores, const MatrixView<From>& in, const MatrixView<To>& out, Assign assign) {
  ParallelFor(cores, in.cols, [&](int64_t j) {
    for (int64_t i = 0; i < in.rows; ++i) assign(out(i, j), in(i, j));
  });
}

// Calls assign(out(i, j), in(j, i)) for all elements, tile by tile.
template <class From, class To, class Assign>
void Transpose(int cores, const MatrixView<From>& in, const MatrixView<To>& out, Assign assign) {
  const int64_t tiles = (out.cols + kTile - 1) / kTile;
  ParallelFor(cores, tiles, [&](int64_t tile) {
    const int64_t j0 = tile * kTile;
    const int64_t j1 = std::min(j0 + kTile, out.cols);
    for (int64_t i0 = 0; i0 < out.rows; i0 += kTile) {
      const int64_t i1 = std::min(i0 + kTile, out.rows);
      for (int64_t j = j0; j < j1; ++j) {
        for (int64_t i = i0; i < i1; ++i) assign(out(i, j), in(j, i));
      }
    }
  });
}

template <class From, class To, class Assign>
void Transfer(int cores, const MatrixView<From>& in, const MatrixView<To>& out, bool transpose,
              Assign assign) {
  if (transpose) {
    Transpose(cores, in, out, assign);
  } else {
    CopyColumns(cores, in, out, assign);
  }
}

// Calls f with typed views of both matrices.
template <class F>
void DispatchPair(const AnyMatrix& in, const AnyMatrix& out, F f) {
  DispatchDType(in.dtype, [&](auto from) {
    DispatchDType(out.dtype, [&](auto to) {
      f(in.As<typename decltype(from)::type>(), out.As<typename decltype(to)::type>());
    });
  });
}

// Real or imaginary parts of a complex matrix stored as a real matrix with twice as many columns.
template <class T>
MatrixView<T> HalfOf(const MatrixView<T>& m, bool imaginary) {
  const int64_t cols = m.cols / 2;
  return {imaginary ? m.data + cols * m.ld : m.data, m.rows, cols, m.ld};
}

// The packed matrix as a column-major view. A row-major matrix is viewed as its transpose.
AnyMatrix AsColumns(const PackedMatrix& shape, std::byte* data) {
  const bool row_major = shape.layout == Layout::kRowMajor;
  const int64_t rows = row_major ? shape.cols : shape.rows;
  const int64_t cols = row_major ? shape.rows : shape.cols;
  return {data, shape.dtype, rows, cols, std::max<int64_t>(1, rows)};
}

// Copies with conversion of types. `transpose`: one of the matrices is a view of a transpose.
void CopyOrTranspose(int cores, const AnyMatrix& in, bool transpose, const AnyMatrix& out) {
  DispatchPair(
      in, out, [&]<class From, class To>(const MatrixView<From>& from, const MatrixView<To>& to) {
        if constexpr (kIsComplex<From> && !kIsComplex<To>) {
          Transfer(cores, from, HalfOf(to, false), transpose,
                   [](To& out, From v) { out = static_cast<To>(v.real()); });
          Transfer(cores, from, HalfOf(to, true), transpose,
                   [](To& out, From v) { out = static_cast<To>(v.imag()); });
        } else if constexpr (!kIsComplex<From> && kIsComplex<To>) {
          const bool splits = from.rows * from.cols == 2 * to.rows * to.cols;
          const auto first = splits ? HalfOf(from, false) : from;
          Transfer(cores, first, to, transpose, [](To& out, From v) { out = ConvertTo<To>(v); });
          if (!splits) return;
          Transfer(cores, HalfOf(from, true), to, transpose,
                   [](To& out, From v) { out.imag(static_cast<RealPart<To>>(v)); });
        } else {
          Transfer(cores, from, to, transpose, [](To& out, From v) { out = ConvertTo<To>(v); });
        }
      });
}

}  // namespace

void Unpack(int cores, const PackedMatrix& in, const AnyMatrix& out) {
  if (in.rows == 0 || in.cols == 0) return;
  // `columns` is only read; AnyMatrix has no const variant.
  const AnyMatrix columns = AsColumns(in, const_cast<std::byte*>(in.data));
  CopyOrTranspose(cores, columns, in.layout == Layout::kRowMajor, out);
}

void Pack(int cores, const AnyMatrix& in, const PackedMatrix& layout, std::byte* out) {
  if (in.rows == 0 || in.cols == 0) return;
  CopyOrTranspose(cores, in, layout.layout == Layout::kRowMajor, AsColumns(layout, out));
}

void ScaleInto(int cores, const AnySparse& in, const double* row, const double* col,
               const AnyMatrix& out) {
  DispatchDType(in.dtype, [&](auto from) {
    DispatchDType(out.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      if constexpr (kIsComplex<From> == kIsComplex<To>) {
        const SparseView<From> a = in.As<From>();
        const MatrixView<To> full = out.As<To>();
        ParallelFor(cores, in.n, [&](int64_t j) {
          std::fill_n(&full(0, j), in.n, To{0});
          const double c = col == nullptr ? 1.0 : col[j];
          a.ForRow(Op::kTranspose, j, [&](int64_t i, From v) {
            const double r = row == nullptr ? 1.0 : row[i];
            full(i, j) = ConvertTo<To>(ToFloat64(v) * r * c);
          });
        });
      }
    });
  });
}

void ScaleInto(int cores, const AnyMatrix& in, const double* row, const double* col,
               const AnyMatrix& out) {
  if (in.rows == 0 || in.cols == 0) return;
  DispatchPair(
      in, out, [&]<class From, class To>(const MatrixView<From>& from, const MatrixView<To>& to) {
        if constexpr (kIsComplex<From> == kIsComplex<To>) {
          if (row == nullptr && col == nullptr) {
            return CopyColumns(cores, from, to, [](To& out, From v) { out = ConvertTo<To>(v); });
          }
          ParallelFor(cores, from.cols, [&](int64_t j) {
            const double c = col == nullptr ? 1.0 : col[j];
            for (int64_t i = 0; i < from.rows; ++i) {
              const double r = row == nullptr ? 1.0 : row[i];
              to(i, j) = ConvertTo<To>(ToFloat64(from(i, j)) * r * c);
            }
          });
        }
      });
}

}  // namespace crout::host
