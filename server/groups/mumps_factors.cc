// SPDX-License-Identifier: Apache-2.0

#include "server/groups/mumps_factors.h"

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

#include "kernels/scalar.h"
#include "kernels/sparse/entry_scales.h"

namespace crout {
namespace {

constexpr size_t kAlignment = 256;

constexpr size_t RoundUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Writes the position of each index of `order` to `positions`.
void Invert(const std::vector<int32_t>& order, int32_t* positions) {
  for (size_t k = 0; k < order.size(); ++k) positions[order[k]] = static_cast<int32_t>(k);
}

template <class T, class Source>
double Write(const Analysis& analysis, const SparseView<Source>& a, std::byte* block,
             std::span<std::byte> workspace) {
  const MumpsLayout layout(analysis, kDTypeOf<T>);
  auto* const rows = reinterpret_cast<int32_t*>(block + layout.rows);
  auto* const columns = reinterpret_cast<int32_t*>(block + layout.columns);
  auto* const values = reinterpret_cast<T*>(block + layout.values);
  auto* const row_position = reinterpret_cast<int32_t*>(workspace.data());
  int32_t* const column_position = row_position + analysis.n;
  Invert(analysis.row_order, row_position);
  Invert(analysis.column_order, column_position);
  const bool scaled = !analysis.row_scale.empty();
  double largest = 0;
  for (int64_t j = 0; j < a.n; ++j) {
    for (int64_t e = a.column_start[j]; e < a.column_start[j + 1]; ++e) {
      const int32_t i = a.row[e];
      rows[e] = row_position[i] + 1;
      columns[e] = column_position[j] + 1;
      auto value = ToFloat64(a.value[e]);
      if (scaled) {
        const EntryScales by =
            InOrder(LargestPart(value), analysis.row_scale[i], analysis.column_scale[j]);
        value = value * by.first * by.second;
      }
      values[e] = ConvertTo<T>(value);
      largest = std::max(largest, Modulus(values[e]));
    }
  }
  return largest;
}

// Calls f(line of A, position, scale) for each line, a row or column, that `order` permutes.
template <class F>
void ForLines(const std::vector<int32_t>& order, const std::vector<double>& scales, F f) {
  for (size_t k = 0; k < order.size(); ++k) {
    f(order[k], k, scales.empty() ? 1.0 : scales[order[k]]);
  }
}

const std::vector<double>& ScalesIf(bool scale, const std::vector<double>& scales) {
  static const std::vector<double> kNone;
  return scale ? scales : kNone;
}

}  // namespace

MumpsLayout::MumpsLayout(const Analysis& analysis, DType dtype)
    : rows(RoundUp(sizeof(MumpsHeader))),
      columns(rows + RoundUp(analysis.nonzeros * sizeof(int32_t))),
      values(columns + RoundUp(analysis.nonzeros * sizeof(int32_t))),
      ranks(values + RoundUp(analysis.nonzeros * SizeOf(dtype))) {}

size_t MumpsLayout::BlockBytes(int count, int64_t rank_megabytes) const {
  return ranks + static_cast<size_t>(count) * static_cast<size_t>(rank_megabytes) * kMumpsMegabyte;
}

int32_t MumpsLayout::RankMegabytes(int count, size_t block_bytes) const {
  const size_t megabytes = (block_bytes - std::min(block_bytes, ranks)) / kMumpsMegabyte / count;
  return static_cast<int32_t>(std::min<size_t>(megabytes, std::numeric_limits<int32_t>::max()));
}

size_t EntriesWorkspaceBytes(const Analysis& analysis) {
  return 2 * static_cast<size_t>(analysis.n) * sizeof(int32_t);
}

double PutMatrix(const Analysis& analysis, const AnySparse& a, DType dtype, std::byte* block,
                 std::span<std::byte> workspace) {
  double largest = 0;
  DispatchDType(dtype, [&](auto factor) {
    using T = typename decltype(factor)::type;
    DispatchDType(a.dtype, [&](auto matrix) {
      using Source = typename decltype(matrix)::type;
      if constexpr (kIsComplex<T> == kIsComplex<Source>) {
        largest = Write<T>(analysis, a.As<Source>(), block, workspace);
      }
    });
  });
  return largest;
}

void PutRightHandSides(const Analysis& analysis, Op op, bool scale, const AnyMatrix& b,
                       std::byte* to) {
  const bool transposed = op != Op::kNone;
  const auto& order = transposed ? analysis.column_order : analysis.row_order;
  const auto& scales = ScalesIf(scale, transposed ? analysis.column_scale : analysis.row_scale);
  DispatchDType(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<T> from = b.As<T>();
    for (int64_t j = 0; j < b.cols; ++j) {
      T* const column = reinterpret_cast<T*>(to) + j * b.rows;
      ForLines(order, scales, [&](int64_t i, int64_t k, double by) {
        const T value = op == Op::kConjugateTranspose ? Conj(from(i, j)) : from(i, j);
        column[k] = value * static_cast<RealPart<T>>(by);
      });
    }
  });
}

void TakeSolutions(const Analysis& analysis, Op op, bool scale, const std::byte* from,
                   const AnyMatrix& x) {
  const bool transposed = op != Op::kNone;
  const auto& order = transposed ? analysis.row_order : analysis.column_order;
  const auto& scales = ScalesIf(scale, transposed ? analysis.row_scale : analysis.column_scale);
  DispatchDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const MatrixView<T> to = x.As<T>();
    for (int64_t j = 0; j < x.cols; ++j) {
      const T* const column = reinterpret_cast<const T*>(from) + j * x.rows;
      ForLines(order, scales, [&](int64_t i, int64_t k, double by) {
        const T value = column[k] * static_cast<RealPart<T>>(by);
        to(i, j) = op == Op::kConjugateTranspose ? Conj(value) : value;
      });
    }
  });
}

absl::StatusOr<void*> MumpsFactors::DoAllocate(size_t bytes) {
  // From the arena, because other blocks keep memory that was touched.
  absl::StatusOr<void*> block = arena_.Acquire(std::max(bytes, sizeof(MumpsHeader)));
  if (block.ok()) new (*block) MumpsHeader;
  return block;
}

void MumpsFactors::DoDeallocate(void* data, size_t bytes) {
  const uint64_t factor = static_cast<const MumpsHeader*>(data)->factor;
  if (factor != 0) group_.Forget(factor);
  arena_.Release(data, std::max(bytes, sizeof(MumpsHeader)));
}

}  // namespace crout
