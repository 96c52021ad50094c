// SPDX-License-Identifier: Apache-2.0

#include "client/cli/input/change_files.h"

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/elements.h"
#include "client/cli/input/local_matrix.h"
#include "client/cli/input/matrix_input.h"
#include "client/cli/input/series_files.h"

namespace crout::cli {
namespace {

using client::MatrixChange;

absl::StatusOr<MatrixChange> ReadValues(const std::string& path, v1::Dtype dtype,
                                        const std::string& entry_digest) {
  const auto input = MatrixInput::Open(path, dtype, absl::InfiniteFuture());
  if (!input.ok()) return input.status();
  if (const auto& sparse = input->sparse()) {
    return WithType(dtype, [&](auto type) -> absl::StatusOr<MatrixChange> {
      return MatrixChange::Values(ElementsOf<decltype(type)>(sparse->values),
                                  sparse->EntryDigest());
    });
  }
  const auto values = ReadRhs(path, dtype);
  if (!values.ok()) return values.status();
  if (values->rows != 1 && values->cols != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", values->rows, " x ", values->cols,
                     ", but changed values are a vector. Write one column"));
  }
  return WithType(dtype, [&](auto type) -> absl::StatusOr<MatrixChange> {
    return MatrixChange::Values(ElementsOf<decltype(type)>(*values), entry_digest);
  });
}

template <class T>
bool Take(std::complex<double> value, std::vector<T>* values) {
  if constexpr (std::is_floating_point_v<T>) {
    values->push_back(static_cast<T>(value.real()));
    return value.imag() == 0;
  } else {
    values->push_back(static_cast<T>(value));
    return true;
  }
}

absl::StatusOr<MatrixChange> ReadEntries(const std::string& path, v1::Dtype dtype) {
  const auto matrix = LocalMatrix::Load(path);
  if (!matrix.ok()) return matrix.status();
  constexpr int64_t kMaxOrder = std::numeric_limits<int32_t>::max();
  if (matrix->dense() != nullptr || matrix->rows() > kMaxOrder || matrix->cols() > kMaxOrder) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " is not in Matrix Market coordinate format. Write the changed entries in that format"));
  }
  return WithType(dtype, [&](auto type) -> absl::StatusOr<MatrixChange> {
    std::vector<int32_t> rows, cols;
    std::vector<decltype(type)> values;
    bool fits = true;
    matrix->ForEach([&](int64_t row, int64_t col, std::complex<double> value) {
      rows.push_back(static_cast<int32_t>(row));
      cols.push_back(static_cast<int32_t>(col));
      fits &= Take(value, &values);
    });
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat(
          path,
          ": the values are complex, the matrix is real. Write real values, or start with a "
          "complex matrix"));
    return MatrixChange::Entries<decltype(type)>(rows, cols, values);
  });
}

absl::StatusOr<MatrixChange> ReadLowRank(const ChangeFiles& files, v1::Dtype dtype) {
  const auto u = ReadRhs(files.u, dtype);
  if (!u.ok()) return u.status();
  const auto v = ReadRhs(files.v, dtype);
  if (!v.ok()) return v.status();
  if (u->rows != v->rows || u->cols != v->cols) {
    return absl::InvalidArgumentError(absl::StrCat(files.u, " is ", u->rows, " x ", u->cols, ", ",
                                                   files.v, " ", v->rows, " x ", v->cols));
  }
  return WithType(dtype, [&](auto type) -> absl::StatusOr<MatrixChange> {
    using T = decltype(type);
    const absl::Span<const T> by_columns = ElementsOf<T>(*v);
    std::vector<T> by_rows;
    for (int64_t i = 0; i < v->rows; ++i) {
      for (int64_t k = 0; k < v->cols; ++k) by_rows.push_back(by_columns[i + k * v->rows]);
    }
    return MatrixChange::LowRank<T>(ElementsOf<T>(*u), by_rows, u->rows, u->cols);
  });
}

}  // namespace

std::vector<std::string> ChangeFiles::paths() const {
  std::vector<std::string> paths;
  for (const std::string* path : {&values, &entries, &u, &v}) {
    if (!path->empty()) paths.push_back(*path);
  }
  return paths;
}

absl::Status CheckChange(const ChangeFiles& files) {
  if (files.u.empty() != files.v.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        files.u, files.v, ": a low-rank change needs both U and V. Add the other file"));
  }
  const int kinds = !files.values.empty() + !files.entries.empty() + !files.u.empty();
  if (kinds <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(files.paths(), " and "),
                   " change the matrix of the same step. Keep one of them"));
}

absl::StatusOr<MatrixChange> ReadChange(const ChangeFiles& files, v1::Dtype dtype,
                                        const std::string& entry_digest) {
  if (!files.values.empty()) return ReadValues(files.values, dtype, entry_digest);
  if (!files.entries.empty()) return ReadEntries(files.entries, dtype);
  return ReadLowRank(files, dtype);
}

}  // namespace crout::cli
