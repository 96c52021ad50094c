// SPDX-License-Identifier: Apache-2.0

#include "client/cli/output/factor_files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <complex>
#include <cstddef>
#include <fstream>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_codes.h"

namespace crout::cli {
namespace {

template <class T>
absl::Span<const std::byte> BytesOf(const T* values, size_t count) {
  return {reinterpret_cast<const std::byte*>(values), count * sizeof(T)};
}

// Writes integers, each plus `base`.
template <class Integers>
absl::Status WriteIntegers(ArrayFiles* files, const std::string& part, const Integers& values,
                           int64_t base = 0) {
  std::vector<int64_t> shifted;
  for (const int64_t value : values) shifted.push_back(value + base);
  return files->WriteVector(part, Element::kInt64, BytesOf(shifted.data(), shifted.size()));
}

int64_t BaseOf(const ArrayFiles& files) {
  return files.format() == FileFormat::kMatrixMarket ? 1 : 0;
}

// Writes the scales of rows and columns, if the matrix was scaled.
template <class Scales>
absl::Status WriteScales(ArrayFiles* files, const Scales& rows, const Scales& columns) {
  for (const auto& [part, scales] : {std::pair("row_scales", &rows), {"col_scales", &columns}}) {
    if (scales->empty()) continue;
    const auto count = static_cast<size_t>(scales->size());
    absl::Status status =
        files->WriteVector(part, Element::kFloat64, BytesOf(scales->data(), count));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Writes L and U of a member of type T.
template <class T>
absl::Status WriteTriangles(ArrayFiles* files, const MemberFactors& member) {
  const int64_t rows = member.lu.rows(0), cols = member.lu.cols(0), diagonal = std::min(rows, cols);
  const auto lu = member.lu.values<T>(0);
  const auto write = [&](const char* part, int64_t height, int64_t width, auto at) {
    const auto writer = files->NewWriter(part);
    if (!writer.ok()) return writer.status();
    absl::Status status = (*writer)->Begin(ElementOf(member.lu.dtype()), height, width);
    for (int64_t j = 0; j < width && status.ok(); ++j) {
      std::vector<T> column(static_cast<size_t>(height));
      for (int64_t i = 0; i < height; ++i) column[static_cast<size_t>(i)] = at(i, j);
      status = (*writer)->Append(BytesOf(column.data(), column.size()));
    }
    if (status.ok()) status = (*writer)->Close();
    return status;
  };
  const auto value = [&](int64_t i, int64_t j) { return lu[static_cast<size_t>(i + j * rows)]; };
  absl::Status status = write("L", rows, diagonal, [&](int64_t i, int64_t j) {
    return i > j ? value(i, j) : i == j ? T{1} : T{0};
  });
  if (!status.ok()) return status;
  return write("U", diagonal, cols,
               [&](int64_t i, int64_t j) { return i <= j ? value(i, j) : T{0}; });
}

absl::Status WriteTriangles(ArrayFiles* files, const MemberFactors& member) {
  switch (member.lu.dtype()) {
    case Dtype::kFloat32:
      return WriteTriangles<float>(files, member);
    case Dtype::kComplex64:
      return WriteTriangles<std::complex<float>>(files, member);
    case Dtype::kComplex128:
      return WriteTriangles<std::complex<double>>(files, member);
    default:
      return WriteTriangles<double>(files, member);
  }
}

// Calls f with each value in its own type.
template <class F>
void WithValue(const CompressedRows& rows, int64_t e, F f) {
  const Element element = ElementOf(rows.dtype);
  WithElement(element, &rows.value_bytes[static_cast<size_t>(e) * SizeOf(element)], f);
}

// Adds a unit diagonal, which is the last entry of each row.
CompressedRows WithUnitDiagonal(const CompressedRows& lower) {
  CompressedRows l;
  l.n = lower.n;
  l.dtype = lower.dtype;
  l.starts = {0};
  const Element element = ElementOf(lower.dtype);
  const auto add = [&](int32_t column, auto value) {
    l.columns.push_back(column);
    const auto bytes = BytesOf(&value, 1);
    l.value_bytes.insert(l.value_bytes.end(), bytes.begin(), bytes.end());
  };
  const std::byte zero[sizeof(std::complex<double>)] = {};
  for (int64_t i = 0; i < lower.n; ++i) {
    const auto row = static_cast<size_t>(i);
    for (int64_t e = lower.starts[row]; e < lower.starts[row + 1]; ++e) {
      WithValue(lower, e, [&](auto value) { add(lower.columns[static_cast<size_t>(e)], value); });
    }
    WithElement(element, zero,
                [&](auto of_type) { add(static_cast<int32_t>(i), decltype(of_type)(1)); });
    l.starts.push_back(l.entries());
  }
  return l;
}

// Writes coordinates, with numbers in the fewest digits that read back to the same value.
absl::Status WriteCoordinates(const std::string& path, const CompressedRows& rows) {
  std::ofstream file(path, std::ios::trunc | std::ios::binary);
  if (!file) return FileErrnoError(errno, absl::StrCat("cannot write ", path));
  file << "%%MatrixMarket matrix coordinate "
       << (IsComplex(ElementOf(rows.dtype)) ? "complex" : "real") << " general\n"
       << rows.n << ' ' << rows.n << ' ' << rows.entries() << '\n';
  const auto number = [&](auto part) {
    char text[40];
    file.write(text, std::to_chars(text, text + sizeof text, part).ptr - text);
  };
  for (int64_t i = 0; i < rows.n; ++i) {
    const auto row = static_cast<size_t>(i);
    for (int64_t e = rows.starts[row]; e < rows.starts[row + 1]; ++e) {
      file << i + 1 << ' ' << rows.columns[static_cast<size_t>(e)] + 1 << ' ';
      WithValue(rows, e, [&](auto value) {
        if constexpr (std::is_arithmetic_v<decltype(value)>) {
          number(value);
        } else {
          number(value.real());
          file << ' ';
          number(value.imag());
        }
      });
      file << '\n';
    }
  }
  file.close();
  if (!file) return FileError(absl::StrCat("cannot write all of ", path));
  return absl::OkStatus();
}

absl::Status WriteSparse(ArrayFiles* files, const std::string& part, const CompressedRows& rows) {
  if (files->format() == FileFormat::kMatrixMarket) {
    const auto path = files->Add(part);
    return path.ok() ? WriteCoordinates(*path, rows) : path.status();
  }
  absl::Status status =
      files->WriteVector(absl::StrCat(part, "_data"), ElementOf(rows.dtype), rows.value_bytes);
  if (status.ok()) status = WriteIntegers(files, absl::StrCat(part, "_indices"), rows.columns);
  if (status.ok()) status = WriteIntegers(files, absl::StrCat(part, "_indptr"), rows.starts);
  return status;
}

}  // namespace

absl::Status DenseFactorFiles::Begin(const DenseSpec& spec) {
  n_ = spec.rows;
  index_ = 0;
  unit_in_l_ = factors_.factor.unit_diagonal == UnitTriangle::kL;
  const Element element = ElementOf(spec.dtype);
  decoder_ = ElementDecoder(element);
  if (absl::Status status = l_->Begin(element, n_, n_); !status.ok()) return status;
  return u_->Begin(element, n_, n_);
}

absl::Status DenseFactorFiles::Append(absl::Span<const std::byte> bytes) {
  absl::Status status;
  decoder_.Append(bytes, [&](auto value) {
    const int64_t i = index_ % n_;
    const int64_t j = index_ / n_;
    ++index_;
    const decltype(value) zero = 0, one = 1;
    const auto l = i > j ? value : i < j ? zero : unit_in_l_ ? one : value;
    const auto u = i < j ? value : i > j ? zero : unit_in_l_ ? value : one;
    status.Update(l_->Append(BytesOf(&l, 1)));
    status.Update(u_->Append(BytesOf(&u, 1)));
  });
  return status;
}

absl::Status DenseFactorFiles::Close() {
  absl::Status status = l_->Close();
  status.Update(u_->Close());
  return status;
}

absl::Status WriteVectors(ArrayFiles* files, const DenseFactors& factors) {
  absl::Status status = WriteIntegers(files, "p", factors.permutation, BaseOf(*files));
  return status.ok() ? WriteScales(files, factors.row_scales, factors.col_scales) : status;
}

absl::Status WriteMember(ArrayFiles* files, const MemberFactors& member) {
  if (absl::Status status = WriteTriangles(files, member); !status.ok()) return status;
  std::vector<int64_t> rows(static_cast<size_t>(member.lu.rows(0)));
  std::iota(rows.begin(), rows.end(), 0);
  const auto ipiv = member.ipiv(0);
  for (size_t i = 0; i < ipiv.size(); ++i) {
    // An index from the server, which may be invalid.
    const int64_t other = int64_t{ipiv[i]} - 1;
    if (other < 0 || other >= member.lu.rows(0)) {
      return absl::InternalError("the server sent a row interchange beyond the matrix");
    }
    std::swap(rows[i], rows[static_cast<size_t>(other)]);
  }
  return WriteIntegers(files, "p", rows, BaseOf(*files));
}

absl::Status WriteSparseFactors(ArrayFiles* files, const SparseFactors& factors) {
  absl::Status status = WriteSparse(files, "L", WithUnitDiagonal(factors.lower));
  if (status.ok()) status = WriteSparse(files, "U", factors.upper);
  if (status.ok()) status = WriteIntegers(files, "p", factors.row_permutation, BaseOf(*files));
  if (status.ok()) status = WriteIntegers(files, "q", factors.column_permutation, BaseOf(*files));
  return status.ok() ? WriteScales(files, factors.row_scales, factors.col_scales) : status;
}

}  // namespace crout::cli
