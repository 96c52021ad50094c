// SPDX-License-Identifier: Apache-2.0

#include "client/cli/input/local_matrix.h"

#include "absl/strings/str_cat.h"
#include "client/cli/formats/matrix_market.h"
#include "client/cli/formats/temporary_file.h"
#include "client/cli/input/matrix_input.h"

namespace crout::cli {
namespace {

Coordinates CoordinatesOf(const SparseArray& sparse) {
  Coordinates matrix{sparse.rows, sparse.cols, {}};
  for (size_t k = 0; k < sparse.row.size(); ++k) {
    matrix.entries.push_back(
        {sparse.row[k], sparse.col[k], sparse.values.At(static_cast<int64_t>(k), 0)});
  }
  return matrix;
}

// Converts a real matrix that was read as complex.
Array RealOf(const Array& array) {
  Array real;
  real.rows = array.rows;
  real.cols = array.cols;
  for (int64_t j = 0; j < array.cols; ++j) {
    for (int64_t i = 0; i < array.rows; ++i) {
      const double value = array.At(i, j).real();
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      real.bytes.insert(real.bytes.end(), bytes, bytes + sizeof value);
    }
  }
  return real;
}

}  // namespace

absl::StatusOr<LocalMatrix> LocalMatrix::Load(const std::string& path) {
  auto input = MatrixInput::Open(path, std::nullopt, absl::InfiniteFuture());
  if (!input.ok()) return input.status();
  if (input->array().has_value()) return LocalMatrix(*input->array());
  if (input->sparse().has_value()) return LocalMatrix(CoordinatesOf(*input->sparse()));
  auto matrix = ReadMatrixMarket(input->path());
  if (!matrix.ok()) return matrix.status();
  return LocalMatrix(*std::move(matrix));
}

int64_t LocalMatrix::rows() const {
  return std::visit([](const auto& matrix) { return matrix.rows; }, matrix_);
}

int64_t LocalMatrix::cols() const {
  return std::visit([](const auto& matrix) { return matrix.cols; }, matrix_);
}

absl::StatusOr<Array> ReadRhs(const std::string& path, std::optional<Dtype> dtype,
                              absl::Time deadline) {
  if (path == "-") {  // read more than once
    const auto copy = CopyOfStandardInput(deadline);
    if (!copy.ok()) return copy.status();
    auto rhs = ReadRhs(PathOf(*copy), dtype);
    return rhs.ok() ? std::move(rhs) : Named(rhs.status(), PathOf(*copy), kStandardInput);
  }
  const auto input = MatrixInput::OpenByColumns(path, dtype, absl::InfiniteFuture());
  if (!input.ok()) return input.status();
  if (input->array().has_value()) return *input->array();
  if (input->sparse().has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the matrix is sparse, but this file must be dense. Write it with numpy.save"));
  }
  const auto text = LocalMatrix::Load(path);
  if (!text.ok()) return text.status();
  if (text->dense() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a right-hand side must be dense. Write it as `array real general`"));
  }
  const bool real = input->dtype() == Dtype::kFloat32 || input->dtype() == Dtype::kFloat64;
  Array array = *text->dense();
  if (real && !MatrixMarketIsComplex(path)) array = RealOf(array);
  return std::move(array).As(input->dtype());
}

}  // namespace crout::cli
