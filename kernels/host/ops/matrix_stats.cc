// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/matrix_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/host/device/parallel_for.h"
#include "kernels/host/ops/lanes.h"
#include "kernels/host/ops/vector_clones.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

// A packed matrix as `lines` contiguous columns or rows of `length` elements.
template <class T>
struct Lines {
  const T* data;
  int64_t lines;
  int64_t length;
};

constexpr int64_t kBlock = 512;  // Elements of a line that one task sums: a few KiB, in cache.

constexpr int64_t kSums = Scratch::Count<double>();
constexpr int64_t kBlocks = kSums / kBlock;  // blocks whose cross sums fit into half the scratch

// For elements [begin, end) of every line of `in`: writes the line's sum of |a| to `line_sums`, and
// adds |a| to `cross_sums`, whose index starts at begin. Returns the largest |a|, ignoring NaN.
template <class T>
CROUT_VECTOR_CLONES double SumBlock(const Lines<T>& in, int64_t begin, int64_t end,
                                    double* line_sums, double* cross_sums) {
  const int64_t count = end - begin;
  const int64_t whole = count / kLanes * kLanes;
  double max = 0;
  for (int64_t line = 0; line < in.lines; ++line) {
    const T* a = in.data + line * in.length + begin;
    double sum[kLanes] = {};
    for (int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
      for (int k = 0; k < kLanes; ++k) sum[k] += Modulus(a[i + k]);
    }
    for (int64_t i = whole; i < count; ++i) sum[i - whole] += Modulus(a[i]);
    line_sums[line] = SumOfLanes(sum);
#pragma omp simd reduction(max : max)
    for (int64_t i = 0; i < count; ++i) {
      const double v = Modulus(a[i]);
      cross_sums[i] += v;
      max = v > max ? v : max;
    }
  }
  return max;
}

template <class T, class Predicate>
int64_t FirstWhere(const Lines<T>& in, Predicate predicate) {
  const T* end = in.data + in.lines * in.length;
  const T* found = std::find_if(in.data, end, predicate);
  return found == end ? -1 : found - in.data;
}

// to := max(to, v). Becomes NaN, and stays NaN, once `to` or v is NaN.
void Raise(double& to, double v) { to = std::isnan(to) || v <= to ? to : v; }

double MaxOrNan(const double* x, int64_t count) {
  double max = 0;
  for (int64_t i = 0; i < count; ++i) Raise(max, x[i]);
  return max;
}

struct Norms {
  double line = 0;   // largest sum along a line
  double cross = 0;  // largest sum across lines
  double max_abs = 0;
};

// The first half of `scratch` holds the sums across lines, for up to kBlocks blocks. The second
// half holds the sums along lines, for each block and as many lines as fit.
template <class T>
Norms ComputeNorms(int cores, const Lines<T>& in, Scratch& scratch) {
  auto* const cross_sums = scratch.first<double>();
  auto* const line_sums = scratch.second<double>();  // blocks x lines
  // For longer lines, keeps the sums along lines between groups of blocks. Such matrices have so
  // few lines that this takes under 2^-16 of the matrix's memory.
  std::vector<double> kept(in.length > kSums ? in.lines : 0);
  std::array<double, kBlocks> block_max = {};
  Norms norms;
  for (int64_t begin = 0; begin < in.length; begin += kSums) {
    const int64_t end = std::min(begin + kSums, in.length);
    const int64_t blocks = (end - begin + kBlock - 1) / kBlock;
    const int64_t together = kSums / blocks;
    std::fill_n(cross_sums, end - begin, 0.0);
    for (int64_t line = 0; line < in.lines; line += together) {
      const Lines<T> some{in.data + line * in.length, std::min(together, in.lines - line),
                          in.length};
      ParallelFor(cores, blocks, [&](int64_t b) {
        const int64_t first = begin + b * kBlock;
        const double max = SumBlock(some, first, std::min(first + kBlock, end),
                                    line_sums + b * some.lines, cross_sums + b * kBlock);
        block_max[b] = std::max(block_max[b], max);
      });
      double* const sums = kept.empty() ? line_sums : kept.data() + line;
      for (int64_t b = kept.empty() ? 1 : 0; b < blocks; ++b) {
        for (int64_t l = 0; l < some.lines; ++l) sums[l] += line_sums[b * some.lines + l];
      }
      if (end == in.length) Raise(norms.line, MaxOrNan(sums, some.lines));
    }
    Raise(norms.cross, MaxOrNan(cross_sums, end - begin));
  }
  norms.max_abs = MaxOrNan(block_max.data(), kBlocks);
  return norms;
}

template <class T>
MatrixStats Compute(int cores, const Lines<T>& in, bool row_major, DType converted_to,
                    Scratch& scratch) {
  const Norms norms = ComputeNorms(cores, in, scratch);
  MatrixStats stats;
  stats.norm_one = row_major ? norms.cross : norms.line;
  stats.norm_inf = row_major ? norms.line : norms.cross;
  stats.max_abs = norms.max_abs;
  // Search only if a norm is not finite. The cause can also be an overflow of finite entries.
  if (!std::isfinite(norms.line)) {
    stats.first_non_finite = FirstWhere(in, [](T v) { return !IsFinite(v); });
  }
  const double limit = LargestConvertible(converted_to);
  if (stats.max_abs > limit) {
    stats.first_overflow =
        FirstWhere(in, [limit](T v) { return IsFinite(v) && LargestPart(ToFloat64(v)) > limit; });
  }
  return stats;
}

// Sum of |a| over column j, with the bits of SumBlock's sums for the dense form: same lanes and
// blocks, and zeros add nothing.
template <class T>
double ColumnSum(const SparseView<T>& a, int64_t j) {
  double total = 0;
  double sum[kLanes] = {};
  int64_t block = 0;
  a.ForRow(Op::kTranspose, j, [&](int64_t i, T v) {
    if (i / kBlock != block) {
      total += SumOfLanes(sum);
      std::fill_n(sum, kLanes, 0.0);
      block = i / kBlock;
    }
    sum[i % kLanes] += Modulus(v);
  });
  return total + SumOfLanes(sum);
}

// Sum of |a| over row i. Across lines, SumBlock also adds one element after the other.
template <class T>
double RowSum(const SparseView<T>& a, int64_t i) {
  double sum = 0;
  a.ForRow(Op::kNone, i, [&](int64_t, T v) { sum += Modulus(v); });
  return sum;
}

// Offset, in the dense form, of the first entry by columns that satisfies the predicate; -1 if
// none.
template <class T, class Predicate>
int64_t FirstWhere(const SparseView<T>& a, Predicate predicate) {
  for (int64_t j = 0; j < a.n; ++j) {
    for (int64_t e = a.column_start[j]; e < a.column_start[j + 1]; ++e) {
      if (predicate(a.value[e])) return a.row[e] + j * a.n;
    }
  }
  return -1;
}

// Maxima over some rows and columns.
struct Maxima {
  double column_sum = 0;
  double row_sum = 0;
  double max_abs = 0;  // ignores NaN
};

template <class T>
Maxima MaximaOf(const SparseView<T>& a, int64_t begin, int64_t end) {
  Maxima maxima;
  std::array<double, kBlock> sums{};
  const auto largest = [&](auto sum_of) {
    for (int64_t line = begin; line < end; ++line) sums[line - begin] = sum_of(a, line);
    return MaxOrNan(sums.data(), end - begin);
  };
  maxima.column_sum = largest(ColumnSum<T>);
  maxima.row_sum = largest(RowSum<T>);
  for (int64_t e = a.column_start[begin]; e < a.column_start[end]; ++e) {
    const double v = Modulus(a.value[e]);
    maxima.max_abs = v > maxima.max_abs ? v : maxima.max_abs;
  }
  return maxima;
}

template <class T>
MatrixStats Compute(int cores, const SparseView<T>& a, DType converted_to) {
  std::vector<Maxima> blocks((a.n + kBlock - 1) / kBlock);
  ParallelFor(cores, std::ssize(blocks), [&](int64_t b) {
    blocks[b] = MaximaOf(a, b * kBlock, std::min((b + 1) * kBlock, a.n));
  });
  MatrixStats stats;
  for (const Maxima& block : blocks) {
    Raise(stats.norm_one, block.column_sum);
    Raise(stats.norm_inf, block.row_sum);
    Raise(stats.max_abs, block.max_abs);
  }
  if (!std::isfinite(stats.norm_one)) {
    stats.first_non_finite = FirstWhere(a, [](T v) { return !IsFinite(v); });
  }
  const double limit = LargestConvertible(converted_to);
  if (stats.max_abs > limit) {
    stats.first_overflow =
        FirstWhere(a, [limit](T v) { return IsFinite(v) && LargestPart(ToFloat64(v)) > limit; });
  }
  return stats;
}

}  // namespace

MatrixStats ComputeMatrixStats(int cores, const AnySparse& in, DType converted_to) {
  return DispatchDType(in.dtype, [&](auto tag) {
    return Compute(cores, in.As<typename decltype(tag)::type>(), converted_to);
  });
}

MatrixStats ComputeMatrixStats(int cores, const PackedMatrix& in, DType converted_to,
                               Scratch& scratch) {
  if (in.rows == 0 || in.cols == 0) return MatrixStats();
  const bool row_major = in.layout == Layout::kRowMajor;
  return DispatchDType(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Lines<T> lines{reinterpret_cast<const T*>(in.data), row_major ? in.rows : in.cols,
                         row_major ? in.cols : in.rows};
    return Compute<T>(cores, lines, row_major, converted_to, scratch);
  });
}

}  // namespace crout::host
