#include "kernels/host/ops/convert.h"

#include <algorithm>

#include "kernels/host/device/parallel_for.h"

namespace crout::host {
namespace {

constexpr int64_t kTile = 32;  // Two tiles of float64 fit the first-level cache.

template <class From, class To>
void CopyColumns(int cores, const MatrixView<From>& in, const MatrixView<To>& out) {
  ParallelFor(cores, in.cols, [&](int64_t j) {
    std::transform(&in(0, j), &in(0, j) + in.rows, &out(0, j),
                   [](From v) { return static_cast<To>(v); });
  });
}

// out(i, j) := in(j, i), tile by tile.
template <class From, class To>
void Transpose(int cores, const MatrixView<From>& in, const MatrixView<To>& out) {
  const int64_t tiles = (out.cols + kTile - 1) / kTile;
  ParallelFor(cores, tiles, [&](int64_t tile) {
    const int64_t j0 = tile * kTile;
    const int64_t j1 = std::min(j0 + kTile, out.cols);
    for (int64_t i0 = 0; i0 < out.rows; i0 += kTile) {
      const int64_t i1 = std::min(i0 + kTile, out.rows);
      for (int64_t j = j0; j < j1; ++j) {
        for (int64_t i = i0; i < i1; ++i) out(i, j) = static_cast<To>(in(j, i));
      }
    }
  });
}

// Calls f with typed views of both.
template <class F>
void DispatchPair(const AnyMatrix& in, const AnyMatrix& out, F f) {
  DispatchDType(in.dtype, [&](auto from) {
    DispatchDType(out.dtype, [&](auto to) {
      f(in.As<typename decltype(from)::type>(), out.As<typename decltype(to)::type>());
    });
  });
}

// The packed matrix as a column-major one: itself, or its transpose if it is row-major.
AnyMatrix AsColumns(const PackedMatrix& shape, std::byte* data) {
  const bool row_major = shape.layout == Layout::kRowMajor;
  const int64_t rows = row_major ? shape.cols : shape.rows;
  const int64_t cols = row_major ? shape.rows : shape.cols;
  return {data, shape.dtype, rows, cols, std::max<int64_t>(1, rows)};
}

void CopyOrTranspose(int cores, const AnyMatrix& in, bool transpose, const AnyMatrix& out) {
  DispatchPair(in, out, [&](const auto& from, const auto& to) {
    if (transpose) {
      Transpose(cores, from, to);
    } else {
      CopyColumns(cores, from, to);
    }
  });
}

}  // namespace

void Unpack(int cores, const PackedMatrix& in, const AnyMatrix& out) {
  if (in.rows == 0 || in.cols == 0) return;
  // Read only: AnyMatrix has no form for constant elements.
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
      const SparseView<From> a = in.As<From>();
      const MatrixView<To> full = out.As<To>();
      ParallelFor(cores, in.n, [&](int64_t j) {
        std::fill_n(&full(0, j), in.n, To{0});
        const double c = col == nullptr ? 1.0 : col[j];
        a.ForRow(Op::kTranspose, j, [&](int64_t i, From v) {
          const double r = row == nullptr ? 1.0 : row[i];
          full(i, j) = static_cast<To>(static_cast<double>(v) * r * c);
        });
      });
    });
  });
}

void ScaleInto(int cores, const AnyMatrix& in, const double* row, const double* col,
               const AnyMatrix& out) {
  if (in.rows == 0 || in.cols == 0) return;
  DispatchPair(in, out,
               [&]<class From, class To>(const MatrixView<From>& from, const MatrixView<To>& to) {
                 if (row == nullptr && col == nullptr) return CopyColumns(cores, from, to);
                 ParallelFor(cores, from.cols, [&](int64_t j) {
                   const double c = col == nullptr ? 1.0 : col[j];
                   for (int64_t i = 0; i < from.rows; ++i) {
                     const double r = row == nullptr ? 1.0 : row[i];
                     to(i, j) = static_cast<To>(static_cast<double>(from(i, j)) * r * c);
                   }
                 });
               });
}

}  // namespace crout::host
