// SPDX-License-Identifier: Apache-2.0

// crout_?getrf and crout_?getrs.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>

#include "client/c/error.h"
#include "client/c/handles.h"
#include "crout/matrix_sink.h"

namespace crout::c {
namespace {

thread_local int32_t last_warnings = 0;

// Whether `columns` columns of T, `stride` elements apart, exceed the address space. Both arguments
// are at least 0.
template <class T>
bool TooLarge(int64_t stride, int64_t columns) {
  return static_cast<__int128>(stride) * columns >
         std::numeric_limits<ptrdiff_t>::max() / static_cast<int64_t>(sizeof(T));
}

template <class T>
int64_t Getrf(const crout_connection* connection, int64_t n, const T* a, int64_t lda,
              crout_factor** factor) {
  return Guarded([&]() -> int64_t {
    if (factor == nullptr) return IllegalArgument(5, "factor is null");
    *factor = nullptr;
    if (connection == nullptr) return IllegalArgument(1, "connection is null");
    if (n < 0) return IllegalArgument(2, "n is negative");
    if (a == nullptr && n > 0) return IllegalArgument(3, "a is null");
    if (lda < std::max<int64_t>(1, n)) return IllegalArgument(4, "lda is less than max(1, n)");
    if (TooLarge<T>(n, n)) return IllegalArgument(2, "n x n is more than there are addresses for");
    if (TooLarge<T>(lda, n))
      return IllegalArgument(4, "lda x n is more than there are addresses for");
    const auto status = MakeFactor(*connection, MatrixSource::Strided(a, n, n, lda), {}, {}, {},
                                   OnLost::kFail, factor);
    if (!status.ok()) return ToCode(status);
    const FactorDescription& made = (*factor)->factor.description();
    last_warnings = BitsOf(made.warnings);
    return made.info;
  });
}

std::optional<Operation> OperationOf(char trans) {
  switch (trans) {
    case 'N':
    case 'n':
      return Operation::kNone;
    case 'T':
    case 't':
      return Operation::kTranspose;
    case 'C':
    case 'c':
      return Operation::kConjugateTranspose;
    default:
      return std::nullopt;
  }
}

template <class T>
int64_t Getrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs, T* b, int64_t ldb) {
  return Guarded([&]() -> int64_t {
    const std::optional<Operation> operation = OperationOf(trans);
    if (factor == nullptr) return IllegalArgument(1, "factor is null");
    if (!operation) {
      return IllegalArgument(2, "trans is none of 'N', 'T' and 'C'");
    }
    if (n != factor->factor.description().n) return IllegalArgument(3, "n is not the order of A");
    if (nrhs < 0) return IllegalArgument(4, "nrhs is negative");
    if (b == nullptr && n > 0 && nrhs > 0) return IllegalArgument(5, "b is null");
    if (ldb < std::max<int64_t>(1, n)) return IllegalArgument(6, "ldb is less than max(1, n)");
    if (TooLarge<T>(n, nrhs)) {
      return IllegalArgument(4, "n x nrhs is more than there are addresses for");
    }
    if (TooLarge<T>(ldb, nrhs)) {
      return IllegalArgument(6, "ldb x nrhs is more than there are addresses for");
    }
    // X gets its own memory: a retry after a lost connection sends B again, so B must not change
    // before the call ends.
    const auto size = static_cast<size_t>(n * nrhs);
    const std::unique_ptr<T[]> x(new T[size]);
    SpanSink sink(absl::MakeSpan(x.get(), size), n, nrhs);
    const auto result =
        factor->factor.Solve(MatrixSource::Strided(b, n, nrhs, ldb), {.operation = *operation},
                             &sink, CallWith(factor->progress));
    if (!result.ok()) return ToCode(result.status());
    last_warnings = BitsOf(result->warnings);
    for (int64_t j = 0; j < nrhs && n > 0; ++j) std::copy_n(x.get() + j * n, n, b + j * ldb);
    return CROUT_OK;
  });
}

}  // namespace
}  // namespace crout::c

int64_t crout_sgetrf(crout_connection* connection, int64_t n, const float* a, int64_t lda,
                     crout_factor** factor) {
  return crout::c::Getrf(connection, n, a, lda, factor);
}

int64_t crout_dgetrf(crout_connection* connection, int64_t n, const double* a, int64_t lda,
                     crout_factor** factor) {
  return crout::c::Getrf(connection, n, a, lda, factor);
}

int64_t crout_cgetrf(crout_connection* connection, int64_t n, const crout_complex_float* a,
                     int64_t lda, crout_factor** factor) {
  return crout::c::Getrf(connection, n, a, lda, factor);
}

int64_t crout_zgetrf(crout_connection* connection, int64_t n, const crout_complex_double* a,
                     int64_t lda, crout_factor** factor) {
  return crout::c::Getrf(connection, n, a, lda, factor);
}

int64_t crout_sgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs, float* b,
                     int64_t ldb) {
  return crout::c::Getrs(factor, trans, n, nrhs, b, ldb);
}

int64_t crout_dgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs, double* b,
                     int64_t ldb) {
  return crout::c::Getrs(factor, trans, n, nrhs, b, ldb);
}

int64_t crout_cgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                     crout_complex_float* b, int64_t ldb) {
  return crout::c::Getrs(factor, trans, n, nrhs, b, ldb);
}

int64_t crout_zgetrs(const crout_factor* factor, char trans, int64_t n, int64_t nrhs,
                     crout_complex_double* b, int64_t ldb) {
  return crout::c::Getrs(factor, trans, n, nrhs, b, ldb);
}

int32_t crout_last_warnings(void) { return crout::c::last_warnings; }
