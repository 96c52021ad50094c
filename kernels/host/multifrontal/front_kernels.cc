// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/multifrontal/front_kernels.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <utility>

#include "kernels/host/ops/lanes.h"
#include "kernels/host/ops/pivot_column.h"
#include "kernels/host/ops/vector_clones.h"

namespace crout::host {
namespace {

constexpr int kStep = 4;            // columns eliminated before those to their right are updated
constexpr int kColumnsPerPass = 2;  // columns updated in one pass over the step's columns

// Returns the pivot, or a perturbed pivot of size `smallest` if it is too small.
template <class T>
CROUT_PART_OF_CLONES T PerturbPivot(T pivot, RealPart<T>& smallest, PivotCount& count) {
  const RealPart<T> size = Abs1(pivot);
  if (!(size < smallest)) return pivot;  // NaN is kept
  ++count.perturbed;
  const RealPart<T> least = smallest;
  smallest = -least;
  if (size == 0) {
    ++count.zeros;
    smallest = -std::numeric_limits<RealPart<T>>::infinity();
    return T{least};
  }
  // For subnormal pivots the quotient could overflow.
  if constexpr (kIsComplex<T>) {
    if (size < std::numeric_limits<RealPart<T>>::min()) return T{least};
    return pivot * (least / size);
  } else {
    return std::copysign(least, pivot);
  }
}

template <int kWidth, class T>
CROUT_PART_OF_CLONES void EliminateStep(const MatrixView<T>& a, int64_t pivot_rows, int64_t k,
                                        RealPart<T>* smallest, int32_t* ipiv, PivotCount& count) {
  for (int64_t d = k; d < k + kWidth; ++d) {
    T* const x = &a(0, d);
    const int64_t p = PivotRow(x, d, pivot_rows);
    ipiv[d] = static_cast<int32_t>(p);
    if (p != d) {
      ++count.interchanges;
      for (int64_t j = k; j < k + kWidth; ++j) std::swap(a(d, j), a(p, j));
    }
    x[d] = PerturbPivot(x[d], smallest[d], count);
    if constexpr (!kIsComplex<T>) count.negative += x[d] < 0;
    DivideByPivot(x + d + 1, a.rows - d - 1, x[d]);
    for (int64_t j = d + 1; j < k + kWidth; ++j) {
      T* const y = &a(0, j);
      const T u = y[d];
#pragma omp simd
      for (int64_t i = d + 1; i < a.rows; ++i) y[i] -= x[i] * u;
    }
  }
}

// Subtracts from kColumns columns at `right` the product of kWidth columns of l with u.
template <int kWidth, int kColumns, class T>
CROUT_PART_OF_CLONES void SubtractColumns(const T* l, int64_t ld_l, const T (&u)[kColumns][kWidth],
                                          T* right, int64_t ld, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    for (int c = 0; c < kColumns; ++c) {
      T sum = right[i + c * ld];
      for (int q = 0; q < kWidth; ++q) sum -= l[i + q * ld_l] * u[c][q];
      right[i + c * ld] = sum;
    }
  }
}

template <int kWidth, int kColumns, class T>
CROUT_PART_OF_CLONES void UpdateColumns(const MatrixView<T>& a, int64_t k, const int32_t* ipiv,
                                        int64_t j) {
  T u[kColumns][kWidth];
  for (int c = 0; c < kColumns; ++c) {
    T* const column = &a(0, j + c);
    for (int64_t d = k; d < k + kWidth; ++d) std::swap(column[d], column[ipiv[d]]);
    for (int q = 0; q < kWidth; ++q) {
      T sum = column[k + q];
      for (int p = 0; p < q; ++p) sum -= a(k + q, k + p) * u[c][p];
      column[k + q] = u[c][q] = sum;
    }
  }
  SubtractColumns<kWidth, kColumns>(&a(0, k), a.ld, u, &a(0, j), a.ld, k + kWidth, a.rows);
}

template <int kWidth, class T>
CROUT_PART_OF_CLONES void Step(const MatrixView<T>& a, int64_t pivot_rows, int64_t k,
                               RealPart<T>* smallest, int32_t* ipiv, PivotCount& count) {
  EliminateStep<kWidth>(a, pivot_rows, k, smallest, ipiv, count);
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t d = k; d < k + kWidth; ++d) std::swap(a(d, j), a(ipiv[d], j));
  }
  int64_t j = k + kWidth;
  for (; j + kColumnsPerPass <= a.cols; j += kColumnsPerPass)
    UpdateColumns<kWidth, kColumnsPerPass>(a, k, ipiv, j);
  for (; j < a.cols; ++j) UpdateColumns<kWidth, 1>(a, k, ipiv, j);
}

template <class T>
CROUT_VECTOR_CLONES void Eliminate(const MatrixView<T>& a, int64_t pivot_rows,
                                   RealPart<T>* smallest, int32_t* ipiv, PivotCount& count) {
  int64_t k = 0;
  for (; k <= a.cols - kStep; k += kStep) Step<kStep>(a, pivot_rows, k, smallest, ipiv, count);
  for (; k < a.cols; ++k) Step<1>(a, pivot_rows, k, smallest, ipiv, count);
}

template <class T>
CROUT_VECTOR_CLONES void SolveLower(const MatrixView<T>& l, const MatrixView<T>& b) {
  for (int64_t j = 0; j < b.cols; ++j) {
    T* const x = &b(0, j);
    for (int64_t k = 0; k < l.cols; ++k) {
      const T u = x[k];
      const T* const column = &l(0, k);
#pragma omp simd
      for (int64_t i = k + 1; i < l.cols; ++i) x[i] -= column[i] * u;
    }
  }
}

template <int kWidth, int kColumns, class T>
CROUT_PART_OF_CLONES void SubtractAt(const MatrixView<T>& a, const MatrixView<T>& b,
                                     const MatrixView<T>& c, int64_t k, int64_t j) {
  T u[kColumns][kWidth];
  for (int s = 0; s < kColumns; ++s) {
    for (int q = 0; q < kWidth; ++q) u[s][q] = b(k + q, j + s);
  }
  SubtractColumns<kWidth, kColumns>(&a(0, k), a.ld, u, &c(0, j), c.ld, 0, c.rows);
}

template <int kWidth, class T>
CROUT_PART_OF_CLONES void SubtractStep(const MatrixView<T>& a, const MatrixView<T>& b,
                                       const MatrixView<T>& c, int64_t k) {
  int64_t j = 0;
  for (; j + kColumnsPerPass <= c.cols; j += kColumnsPerPass)
    SubtractAt<kWidth, kColumnsPerPass>(a, b, c, k, j);
  for (; j < c.cols; ++j) SubtractAt<kWidth, 1>(a, b, c, k, j);
}

template <class T>
CROUT_VECTOR_CLONES void SubtractSmall(const MatrixView<T>& a, const MatrixView<T>& b,
                                       const MatrixView<T>& c) {
  int64_t k = 0;
  for (; k + kStep <= a.cols; k += kStep) SubtractStep<kStep>(a, b, c, k);
  for (; k < a.cols; ++k) SubtractStep<1>(a, b, c, k);
}

// Returns the largest modulus of the first `upper` elements of x. Adds 0 times every element to
// `check`, which becomes NaN if any is NaN or Inf.
template <class T>
CROUT_PART_OF_CLONES double Scan(const T* x, int64_t upper, int64_t count, double& check) {
  check += SumInLanes<double>(count, [x](int64_t i) {
    if constexpr (kIsComplex<T>) {
      return static_cast<double>(x[i].real() * 0 + x[i].imag() * 0);
    } else {
      return static_cast<double>(x[i] * 0);
    }
  });
  return MaxAbs(x, upper);
}

template <class T>
CROUT_VECTOR_CLONES double ScanColumns(const MatrixView<T>& a, bool upper, double& check) {
  double largest = 0;
  for (int64_t j = 0; j < a.cols; ++j) {
    largest = std::max(largest, Scan(&a(0, j), upper ? j + 1 : a.rows, a.rows, check));
  }
  return largest;
}

template <class T>
CROUT_VECTOR_CLONES void MarkColumns(const MatrixView<T>& l, double most, RealPart<T>* smallest) {
  for (int64_t k = 0; k < l.cols; ++k) {
    if (smallest[k] > 0 && MaxAbs(&l(0, k), l.rows) > most) smallest[k] = -smallest[k];
  }
}

}  // namespace

template <class T>
void EliminatePanel(const MatrixView<T>& a, int64_t pivot_rows, RealPart<T>* smallest,
                    int32_t* ipiv, PivotCount& count) {
  Eliminate(a, pivot_rows, smallest, ipiv, count);
}

template <class T>
void ExchangeRows(const int32_t* ipiv, int64_t count, const MatrixView<T>& a) {
  for (int64_t j = 0; j < a.cols; ++j) {
    T* const x = &a(0, j);
    for (int64_t k = 0; k < count; ++k) std::swap(x[k], x[ipiv[k]]);
  }
}

template <class T>
void SolveSmallLower(const MatrixView<T>& l, const MatrixView<T>& b) {
  SolveLower(l, b);
}

template <class T>
void SubtractSmallProduct(const MatrixView<T>& a, const MatrixView<T>& b, const MatrixView<T>& c) {
  SubtractSmall(a, b, c);
}

template <class T>
double LargestOfUpper(const MatrixView<T>& a, bool& finite) {
  double check = 0;
  const double largest = ScanColumns(a, true, check);
  if (!(check == 0)) finite = false;
  return largest;
}

template <class T>
double LargestOf(const MatrixView<T>& a, bool& finite) {
  double check = 0;
  const double largest = ScanColumns(a, false, check);
  if (!(check == 0)) finite = false;
  return largest;
}

template <class T>
void MarkLargeColumns(const MatrixView<T>& l, double most, RealPart<T>* smallest) {
  MarkColumns(l, most, smallest);
}

#define CROUT_INSTANTIATE(T)                                                          \
  template void EliminatePanel(const MatrixView<T>&, int64_t, RealPart<T>*, int32_t*, \
                               PivotCount&);                                          \
  template void ExchangeRows(const int32_t*, int64_t, const MatrixView<T>&);          \
  template void SolveSmallLower(const MatrixView<T>&, const MatrixView<T>&);          \
  template void SubtractSmallProduct(const MatrixView<T>&, const MatrixView<T>&,      \
                                     const MatrixView<T>&);                           \
  template double LargestOfUpper(const MatrixView<T>&, bool&);                        \
  template double LargestOf(const MatrixView<T>&, bool&);                             \
  template void MarkLargeColumns(const MatrixView<T>&, double, RealPart<T>*);
CROUT_INSTANTIATE(float)
CROUT_INSTANTIATE(double)
CROUT_INSTANTIATE(std::complex<float>)
CROUT_INSTANTIATE(std::complex<double>)
#undef CROUT_INSTANTIATE

}  // namespace crout::host
