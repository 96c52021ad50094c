// SPDX-License-Identifier: Apache-2.0

// Eigen's dense matrices as sources and sinks of calls. Header only; requires Eigen 3.3 or newer.
//
//   auto client = crout::Client::Connect({.server = "127.0.0.1:50051"});
//   if (!client.ok()) return client.status();
//   Eigen::MatrixXd a = ..., b = ..., x(b.rows(), b.cols());
//   auto factor = crout::Factor::Make(*std::move(client), crout::ToSource(a));
//   if (!factor.ok()) return factor.status();
//   crout::StridedSink sink = crout::ToSink(x);
//   auto result = factor->Solve(crout::ToSource(b), {}, &sink);
#ifndef CROUT_CROUT_EIGEN_H_
#define CROUT_CROUT_EIGEN_H_

#include <Eigen/Core>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "crout/matrix_sink.h"
#include "crout/matrix_source.h"

namespace crout {
inline namespace api {
namespace internal {

// Accepts matrices, maps, and blocks of them: expressions with elements in memory.
template <class Derived>
constexpr void RequireDense() {
  using Scalar = typename Derived::Scalar;
  static_assert(std::is_same_v<Scalar, float> || std::is_same_v<Scalar, double> ||
                    std::is_same_v<Scalar, std::complex<float>> ||
                    std::is_same_v<Scalar, std::complex<double>>,
                "Crout takes matrices of float and double, and of complex numbers of these");
  static_assert((Eigen::internal::traits<Derived>::Flags & Eigen::DirectAccessBit) != 0,
                "an expression has no memory: evaluate it into a matrix first");
}

template <class Derived>
StorageOrder OrderOf() {
  return Derived::IsRowMajor ? StorageOrder::kRowMajor : StorageOrder::kColumnMajor;
}

// Elements between the starts of two columns (row-major: rows).
template <class Derived>
int64_t StrideOf(const Derived& matrix) {
  return Derived::IsVectorAtCompileTime ? matrix.size() : matrix.outerStride();
}

}  // namespace internal

// Source that refers to the memory of `matrix`, which is a matrix, map or block of either storage
// order. Calls with the source return INVALID_ARGUMENT if the elements of a column (row-major: row)
// are not contiguous (an inner stride).
template <class Derived>
MatrixSource ToSource(const Eigen::DenseBase<Derived>& matrix) {
  internal::RequireDense<Derived>();
  const Derived& m = matrix.derived();
  if (m.innerStride() != 1) {
    return MatrixSource::Invalid(
        absl::InvalidArgumentError("the Eigen matrix has an inner stride: copy it first"));
  }
  return MatrixSource::Strided(m.data(), m.rows(), m.cols(), internal::StrideOf(m),
                               internal::OrderOf<Derived>());
}
// Deleted: the source would refer to the memory of a temporary.
template <class Derived>
MatrixSource ToSource(Eigen::PlainObjectBase<Derived>&& matrix) = delete;

// Sink that fills `matrix`, which must outlive it and have the type, shape and storage order of the
// right-hand side. An Eigen vector is a matrix with one column. Calls with the sink return
// INVALID_ARGUMENT for another type or shape, and for an inner stride.
template <class Derived>
StridedSink ToSink(Eigen::DenseBase<Derived>& matrix) {
  internal::RequireDense<Derived>();
  Derived& m = matrix.derived();
  const int64_t stride = m.innerStride() == 1 ? internal::StrideOf(m) : 0;  // 0: refused
  return StridedSink(m.data(), m.rows(), m.cols(), stride, internal::OrderOf<Derived>());
}

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_EIGEN_H_
