// SPDX-License-Identifier: Apache-2.0

// Irregular batches for tests, factored on the host, and checks of single members.
#ifndef CROUT_TESTS_KERNELS_IRREGULAR_BATCH_TESTING_H_
#define CROUT_TESTS_KERNELS_IRREGULAR_BATCH_TESTING_H_

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/host/irr_lu/irr_lu.h"
#include "kernels/scalar.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {

// A rows x cols member, column-major without padding.
template <class T>
struct Member {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<T> elements;

  T& operator()(int64_t i, int64_t j) { return elements[i + j * rows]; }
  const T& operator()(int64_t i, int64_t j) const { return elements[i + j * rows]; }
};

// Returns a rows x cols member whose elements, or both parts of them, are uniform in [-1, 1).
template <class T>
Member<T> RandomMember(int64_t rows, int64_t cols, uint64_t seed) {
  const ComplexMatrix a = RandomComplex(rows, cols, seed);
  Member<T> member{rows, cols, std::vector<T>(a.size())};
  for (size_t i = 0; i < a.size(); ++i) {
    if constexpr (kIsComplex<T>) {
      member.elements[i] = ConvertTo<T>(a[i]);
    } else {
      member.elements[i] = static_cast<T>(a[i].real());
    }
  }
  return member;
}

template <class T>
ComplexMatrix Elements(const Member<T>& member) {
  ComplexMatrix elements;
  for (const T& x : member.elements) elements.push_back(ToFloat64(x));
  return elements;
}

// Returns 217 Newton matrices of combustion chemistry, from three mechanisms; none without the
// shared matrices (tests/support/matrices/matrices.h).
inline std::vector<Member<double>> SeqPele() {
  std::vector<Member<double>> members;
  for (const RealMatrix& real : RealMatrixIndex()) {
    if (real.file.rfind("seq_pele/", 0) != 0) continue;
    absl::StatusOr<HostMatrix> a = ReadRealMatrix(real);
    EXPECT_OK(a);
    if (a.ok()) members.push_back({real.n, real.n, *std::move(a)});
  }
  if (!members.empty()) {
    EXPECT_EQ(members.size(), 217);
  }
  return members;
}

// The results of factoring a member. `ipiv` is 1-based with diagonal() elements.
template <class T>
struct FactoredMember {
  Member<T> lu;  // in getrf's storage
  std::vector<int64_t> ipiv;
  int32_t info = -1;
  double growth = -1;
  double quality = -1;

  int64_t diagonal() const { return std::min(lu.rows, lu.cols); }
};

template <class T>
bool SameBits(const FactoredMember<T>& a, const FactoredMember<T>& b) {
  return SameBits(a.lu.elements, b.lu.elements) && a.ipiv == b.ipiv && a.info == b.info &&
         a.growth == b.growth && a.quality == b.quality;
}

template <class T>
using Long = std::conditional_t<kIsComplex<T>, std::complex<long double>, long double>;

template <class T>
Long<T> Lengthen(T x) {
  return Long<T>(x);
}

// Returns A - P^T L U in long double, rows x cols.
template <class T>
std::vector<Long<T>> Error(const Member<T>& a, const FactoredMember<T>& factor) {
  const int64_t rows = a.rows;
  std::vector<Long<T>> error(a.elements.size());
  for (int64_t j = 0; j < a.cols; ++j) {
    Long<T>* const column = error.data() + j * rows;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k <= std::min({i, j, factor.diagonal() - 1}); ++k) {
        const Long<T> l = k == i ? Long<T>{1} : Lengthen(factor.lu(i, k));
        column[i] -= l * Lengthen(factor.lu(k, j));
      }
    }
    for (int64_t k = factor.diagonal() - 1; k >= 0; --k) {
      std::swap(column[k], column[factor.ipiv[k] - 1]);
    }
    for (int64_t i = 0; i < rows; ++i) column[i] += Lengthen(a(i, j));
  }
  return error;
}

template <class Number>
double LargestColumnSum(const std::vector<Number>& a, int64_t rows, int64_t cols) {
  long double largest = 0;
  for (int64_t j = 0; j < cols; ++j) {
    long double sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += std::abs(Long<Number>(a[i + j * rows]));
    if (!(sum <= largest)) largest = sum;
  }
  return static_cast<double>(largest);
}

// Returns |PA - LU|_1 / (cols |A|_1 eps), LAPACK's GET01. The norm of A must not be zero if the
// error is not.
template <class T>
double Ratio(const Member<T>& a, const FactoredMember<T>& factor) {
  const double error = LargestColumnSum(Error(a, factor), a.rows, a.cols);
  const double norm = LargestColumnSum(a.elements, a.rows, a.cols);
  if (error == 0) return 0;
  return error / (static_cast<double>(a.cols) * norm * UnitRoundoff(kDTypeOf<T>));
}

// A batch in one buffer of host memory. The leading dimension of a member is its number of rows
// plus `gap`.
template <class T>
class HostBatch {
 public:
  explicit HostBatch(const std::vector<Member<T>>& members, int32_t gap = 0)
      : places_(members.size()) {
    std::vector<MatrixShape> shapes;
    for (const Member<T>& member : members) shapes.push_back({member.rows + gap, member.cols});
    const auto extent = PackMembers(kDTypeOf<T>, shapes, places_);
    EXPECT_OK(extent);
    extent_ = *extent;
    elements_.resize(extent_.bytes / sizeof(T), kUntouched);
    extent_.diagonals = extent_.max_diagonal = 0;
    for (size_t k = 0; k < members.size(); ++k) {
      places_[k].rows -= gap;
      places_[k].first_diagonal = extent_.diagonals;
      extent_.diagonals += places_[k].diagonal();
      extent_.max_diagonal = std::max(extent_.max_diagonal, places_[k].diagonal());
      const MatrixView<T> to = view().template Member<T>(k);
      for (int64_t j = 0; j < to.cols; ++j) {
        for (int64_t i = 0; i < to.rows; ++i) to(i, j) = members[k](i, j);
      }
    }
    extent_.max_rows -= members.empty() ? 0 : gap;
  }

  IrregularBatch view() {
    return {reinterpret_cast<std::byte*>(elements_.data()), extent_, places_.data()};
  }
  const BatchExtent& extent() const { return extent_; }
  const std::vector<BatchMember>& places() const { return places_; }

  // Returns the current elements of member k. Expects that the gaps are unchanged.
  Member<T> Get(int64_t k) {
    const MatrixView<T> from = view().template Member<T>(k);
    Member<T> member{from.rows, from.cols, std::vector<T>(from.rows * from.cols)};
    for (int64_t j = 0; j < from.cols; ++j) {
      for (int64_t i = 0; i < from.rows; ++i) member(i, j) = from(i, j);
      for (int64_t i = from.rows; i < from.ld && from.rows > 0; ++i) {
        EXPECT_EQ(from(i, j), kUntouched);
      }
    }
    return member;
  }

 private:
  static constexpr T kUntouched = 77;

  std::vector<BatchMember> places_;
  BatchExtent extent_;
  std::vector<T> elements_;
};

// Host memory for the results of a factorization (BatchFactors), initially -1.
struct HostBatchFactors {
  explicit HostBatchFactors(const BatchExtent& extent)
      : ipiv(extent.diagonals, -1),
        info(extent.members, -1),
        growth(extent.members, -1),
        quality(extent.members, -1) {}

  BatchFactors view() { return {ipiv.data(), info.data(), growth.data(), quality.data()}; }

  std::vector<int64_t> ipiv;
  std::vector<int32_t> info;
  std::vector<double> growth;
  std::vector<double> quality;
};

// Factors the batch with a workspace of exactly the requested bytes.
template <class T>
absl::Status RunGetrf(
    host::Executor& executor, HostBatch<T>& batch, HostBatchFactors& factors,
    StopRequested stop = [] { return false; }) {
  std::vector<std::byte> workspace(host::IrrGetrfWorkspaceBytes(executor, batch.extent()));
  return host::IrrGetrf(executor, batch.view(), factors.view(), workspace, stop);
}

// Factors a batch on `cores` cores and returns its members.
template <class T>
std::vector<FactoredMember<T>> Factored(const std::vector<Member<T>>& members, int cores = 2,
                                        int32_t gap = 0) {
  host::Executor executor(cores);
  HostBatch<T> batch(members, gap);
  HostBatchFactors factors(batch.extent());
  EXPECT_OK(RunGetrf(executor, batch, factors));
  std::vector<FactoredMember<T>> all;
  for (size_t k = 0; k < members.size(); ++k) {
    const BatchMember& place = batch.places()[k];
    const auto ipiv = factors.ipiv.begin() + place.first_diagonal;
    all.push_back({batch.Get(k), std::vector<int64_t>(ipiv, ipiv + place.diagonal()),
                   factors.info[k], factors.growth[k], factors.quality[k]});
  }
  return all;
}

}  // namespace crout::testing

#endif  // CROUT_TESTS_KERNELS_IRREGULAR_BATCH_TESTING_H_
