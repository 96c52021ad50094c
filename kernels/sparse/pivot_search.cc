// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/pivot_search.h"

#include <algorithm>
#include <complex>
#include <utility>

#include "kernels/scalar.h"

namespace crout {
namespace {

constexpr int64_t kPanel = 32;  // columns eliminated before those to their right are updated
constexpr int kStep = 4;        // columns of a panel subtracted in one pass

// y -= x u, without std::complex's branches for infinities.
inline void Subtract(double x, double u, double& y) { y -= x * u; }
inline void Subtract(std::complex<double> x, std::complex<double> u, std::complex<double>& y) {
  y = {y.real() - (x.real() * u.real() - x.imag() * u.imag()),
       y.imag() - (x.real() * u.imag() + x.imag() * u.real())};
}

template <class T>
class Eliminator {
 public:
  Eliminator(const PivotAcceptance& rule, TrialFront<T>& front)
      : rule_(rule), front_(front), size_(front.size()), end_(front.candidates) {}

  int64_t Run() {
    while (true) {
      const int64_t before = done_;
      while (done_ < end_) DoPanel();
      if (done_ == before || done_ == front_.candidates) return done_;
      end_ = front_.candidates;  // Columns that failed have changed since.
    }
  }

 private:
  T* Column(int64_t j) { return front_.values.data() + j * size_; }

  // Columns from end_ on failed before and are only updated.
  void DoPanel() {
    const int64_t first = done_;
    const int64_t width = std::min(kPanel, end_ - first);
    int64_t tried_end = first + width;
    while (done_ < tried_end) {
      if (Eliminate(first + width)) {
        ++done_;
      } else {
        --tried_end;
        ExchangeColumns(done_, tried_end);
      }
    }
    for (int64_t j = first + width; j < size_; ++j) UpdateColumn(first, j);
    for (int64_t j = first + width; j-- > done_;) ExchangeColumns(j, --end_);
  }

  // Eliminates column done_ if it has an acceptable pivot. Updates columns before panel_end.
  bool Eliminate(int64_t panel_end) {
    T* const x = Column(done_);
    int64_t pivot = done_;
    double most = 0, largest = 0;
    for (int64_t i = done_; i < rule_.eliminated; ++i) {
      const double size = Abs1(x[i]);
      largest = std::max(largest, size);
      if (i < front_.candidates && size > most) {
        most = size;
        pivot = i;
      }
    }
    if (!(most > rule_.least[front_.columns[done_]] && most >= rule_.threshold * largest)) {
      return false;
    }
    ExchangeRows(done_, pivot);
    const T inverse = T{1} / x[done_];
    for (int64_t i = done_ + 1; i < size_; ++i) x[i] *= inverse;
    for (int64_t j = done_ + 1; j < panel_end; ++j) {
      T* const y = Column(j);
      const T u = y[done_];
      if (u == T{0}) continue;
      for (int64_t i = done_ + 1; i < size_; ++i) Subtract(x[i], u, y[i]);
    }
    return true;
  }

  // Subtracts the contributions of columns [first, done_) from column j.
  void UpdateColumn(int64_t first, int64_t j) {
    T* const y = Column(j);
    int64_t k = first;
    for (; k + kStep <= done_; k += kStep) {
      const T* x[kStep];
      T u[kStep];
      for (int s = 0; s < kStep; ++s) {
        x[s] = Column(k + s);
        u[s] = y[k + s];
        for (int t = 0; t < s; ++t) Subtract(x[t][k + s], u[t], u[s]);
        y[k + s] = u[s];
      }
      for (int64_t i = k + kStep; i < size_; ++i) {
        T sum = y[i];
        for (int s = 0; s < kStep; ++s) Subtract(x[s][i], u[s], sum);
        y[i] = sum;
      }
    }
    for (; k < done_; ++k) {
      const T* const x = Column(k);
      for (int64_t i = k + 1; i < size_; ++i) Subtract(x[i], y[k], y[i]);
    }
  }

  void ExchangeRows(int64_t i, int64_t other) {
    if (i == other) return;
    for (int64_t j = 0; j < size_; ++j) std::swap(Column(j)[i], Column(j)[other]);
    std::swap(front_.rows[i], front_.rows[other]);
  }

  void ExchangeColumns(int64_t j, int64_t other) {
    if (j == other) return;
    std::swap_ranges(Column(j), Column(j) + size_, Column(other));
    std::swap(front_.columns[j], front_.columns[other]);
  }

  const PivotAcceptance& rule_;
  TrialFront<T>& front_;
  const int64_t size_;
  int64_t end_;       // columns from here on failed in the current pass
  int64_t done_ = 0;  // eliminated columns
};

}  // namespace

template <class T>
int64_t EliminateAcceptable(const PivotAcceptance& rule, TrialFront<T>& front) {
  return Eliminator<T>(rule, front).Run();
}

template int64_t EliminateAcceptable(const PivotAcceptance&, TrialFront<double>&);
template int64_t EliminateAcceptable(const PivotAcceptance&, TrialFront<std::complex<double>>&);

}  // namespace crout
