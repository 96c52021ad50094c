// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fakes/fake_out_of_core_lu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/util/status_macros.h"

namespace crout::testing {
namespace {

constexpr double kFlopsPerSecond = 1e10;

void SwapRows(const MatrixView<double>& a, int64_t i, int64_t k) {
  for (int64_t j = 0; i != k && j < a.cols; ++j) std::swap(a(i, j), a(k, j));
}

// Subtracts column `l` of L, whose diagonal element is in row k, times row k from the columns
// [begin, cols) of `a`.
void Eliminate(const double* l, int64_t k, const MatrixView<double>& a, int64_t begin) {
  for (int64_t j = begin; j < a.cols; ++j) {
    const double u = a(k, j);
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, j) -= l[i] * u;
  }
}

// Scales column j of `a` by its pivot in row k, unless that is zero.
void Scale(const MatrixView<double>& a, int64_t k, int64_t j) {
  if (a(k, j) == 0) return;
  for (int64_t i = k + 1; i < a.rows; ++i) a(i, j) /= a(k, j);
}

}  // namespace

absl::StatusOr<size_t> FakeOutOfCoreLu::LeastDeviceBytes(DType dtype, int64_t n,
                                                         const LuParameters& /*parameters*/) const {
  return static_cast<size_t>(n) * SizeOf(dtype);
}

double FakeOutOfCoreLu::PredictSeconds(DType /*dtype*/, int64_t n) const {
  return slowness_ * std::pow(static_cast<double>(n), 3) / kFlopsPerSecond;
}

absl::StatusOr<int64_t> FakeOutOfCoreLu::Factor(const AnyMatrix& matrix, int64_t* ipiv,
                                                const LuParameters& /*parameters*/,
                                                DeviceReport& report, StopRequested stop) {
  gate_.Pass();
  const auto a = matrix.As<double>();
  const int64_t n = a.rows;
  const size_t column_bytes = static_cast<size_t>(n) * sizeof(double);
  const auto width = static_cast<int64_t>(workspace_.size() / column_bytes);
  int64_t info = 0;
  for (int64_t first = 0; first < n; first += width) {
    report.ReportColumns(first);
    const bool stalls = stalls_at_ > 0 && first >= stalls_at_;
    while (stalls && !stop() && device_.healthy()) std::this_thread::yield();
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop));
    if (!device_.healthy()) return absl::UnavailableError("the device broke down");
    const int64_t end = std::min(first + width, n);
    const MatrixView<double> block = {workspace_.as<double>(), n, end - first, n};
    for (int64_t j = 0; j < block.cols; ++j) {
      std::memcpy(&block(0, j), &a(0, first + j), column_bytes);
    }
    // The earlier columns of L are in the order of all earlier interchanges.
    for (int64_t k = 0; k < first; ++k) SwapRows(block, k, ipiv[k] - 1);
    for (int64_t k = 0; k < first; ++k) Eliminate(&a(0, k), k, block, 0);
    for (int64_t k = first; k < end; ++k) {
      const double* const column = &block(0, k - first);
      const auto less = [](double x, double y) { return std::abs(x) < std::abs(y); };
      const int64_t pivot = std::max_element(column + k, column + n, less) - column;
      ipiv[k] = pivot + 1;
      SwapRows(block, k, pivot);
      SwapRows({a.data, n, first, a.ld}, k, pivot);
      if (column[k] == 0 && info == 0) info = k + 1;
      Scale(block, k, k - first);
      Eliminate(column, k, block, k - first + 1);
    }
    for (int64_t j = 0; j < block.cols; ++j) {
      std::memcpy(&a(0, first + j), &block(0, j), column_bytes);
    }
  }
  report.ReportColumns(n);
  return info;
}

}  // namespace crout::testing
