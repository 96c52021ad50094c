// SPDX-License-Identifier: Apache-2.0

#include "crout/matrix_sink.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace crout {
inline namespace api {

namespace {

std::string TextOf(const DenseSpec& spec) {
  return absl::StrCat(spec.rows, " x ", spec.cols, " ", Name(spec.dtype), " in ", Name(spec.layout),
                      " order");
}

}  // namespace

absl::Status MatrixSink::BeginBatch(int64_t) {
  return absl::InvalidArgumentError(
      "the sink takes one matrix, but the result is a batch: use BatchMatrices");
}

SpanSink::SpanSink(absl::Span<double> values)
    : memory_(reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(double)),
      dtype_(Dtype::kFloat64) {}

SpanSink::SpanSink(absl::Span<float> values)
    : memory_(reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float)),
      dtype_(Dtype::kFloat32) {}

SpanSink::SpanSink(absl::Span<std::complex<double>> values)
    : memory_(reinterpret_cast<std::byte*>(values.data()),
              values.size() * sizeof(std::complex<double>)),
      dtype_(Dtype::kComplex128) {}

SpanSink::SpanSink(absl::Span<std::complex<float>> values)
    : memory_(reinterpret_cast<std::byte*>(values.data()),
              values.size() * sizeof(std::complex<float>)),
      dtype_(Dtype::kComplex64) {}

absl::Status SpanSink::Begin(const DenseSpec& spec) {
  const size_t elements = memory_.size() / ElementSize(dtype_);
  const std::pair<int64_t, int64_t> shape(spec.rows, spec.cols);
  if (spec.dtype != dtype_ || shape_.value_or(shape) != shape ||
      static_cast<__int128>(spec.rows) * spec.cols != static_cast<__int128>(elements)) {
    const std::string place =
        shape_ ? absl::StrCat(shape_->first, " x ", shape_->second, " in ") : std::string();
    return absl::InvalidArgumentError(
        absl::StrCat("the result is ", spec.rows, " x ", spec.cols, " ", Name(spec.dtype),
                     ", but there is room for ", place, elements, " elements of ", Name(dtype_)));
  }
  rest_ = memory_;
  return absl::OkStatus();
}

absl::Status SpanSink::Append(absl::Span<const std::byte> bytes) {
  if (bytes.empty()) return absl::OkStatus();
  std::memcpy(rest_.data(), bytes.data(), bytes.size());
  rest_.remove_prefix(bytes.size());
  return absl::OkStatus();
}

StridedSink::StridedSink(std::byte* memory, Dtype dtype, int64_t rows, int64_t cols, int64_t stride,
                         StorageOrder layout)
    : memory_(memory), stride_(stride) {
  expected_.dtype = dtype;
  expected_.layout = layout;
  expected_.rows = rows;
  expected_.cols = cols;
}

StridedSink::StridedSink(double* values, int64_t rows, int64_t cols, int64_t stride,
                         StorageOrder layout)
    : StridedSink(reinterpret_cast<std::byte*>(values), Dtype::kFloat64, rows, cols, stride,
                  layout) {}

StridedSink::StridedSink(float* values, int64_t rows, int64_t cols, int64_t stride,
                         StorageOrder layout)
    : StridedSink(reinterpret_cast<std::byte*>(values), Dtype::kFloat32, rows, cols, stride,
                  layout) {}

StridedSink::StridedSink(std::complex<double>* values, int64_t rows, int64_t cols, int64_t stride,
                         StorageOrder layout)
    : StridedSink(reinterpret_cast<std::byte*>(values), Dtype::kComplex128, rows, cols, stride,
                  layout) {}

StridedSink::StridedSink(std::complex<float>* values, int64_t rows, int64_t cols, int64_t stride,
                         StorageOrder layout)
    : StridedSink(reinterpret_cast<std::byte*>(values), Dtype::kComplex64, rows, cols, stride,
                  layout) {}

absl::Status StridedSink::Begin(const DenseSpec& spec) {
  const bool by_rows = spec.layout == StorageOrder::kRowMajor;
  const bool empty = spec.rows == 0 || spec.cols == 0;
  const int64_t length = by_rows ? spec.cols : spec.rows;
  // Largest stride for which the extent of the matrix in bytes fits in ptrdiff_t.
  const int64_t longest = std::numeric_limits<ptrdiff_t>::max() /
                          std::max<int64_t>(1, by_rows ? spec.rows : spec.cols) /
                          static_cast<int64_t>(ElementSize(expected_.dtype));
  if (spec.dtype != expected_.dtype || spec.rows != expected_.rows || spec.cols != expected_.cols ||
      by_rows != (expected_.layout == StorageOrder::kRowMajor) ||
      (!empty && (memory_ == nullptr || stride_ < length || stride_ > longest))) {
    return absl::InvalidArgumentError(absl::StrCat("the result, ", TextOf(spec),
                                                   ", does not fit the output, which has stride ",
                                                   stride_, " for ", TextOf(expected_)));
  }
  written_ = 0;
  return absl::OkStatus();
}

absl::Status StridedSink::Append(absl::Span<const std::byte> bytes) {
  const auto element = static_cast<int64_t>(ElementSize(expected_.dtype));
  const bool by_rows = expected_.layout == StorageOrder::kRowMajor;
  const int64_t length = element * (by_rows ? expected_.cols : expected_.rows);
  while (!bytes.empty()) {
    const int64_t offset = written_ % length;
    const auto piece = bytes.subspan(0, static_cast<size_t>(length - offset));
    std::memcpy(memory_ + written_ / length * stride_ * element + offset, piece.data(),
                piece.size());
    written_ += static_cast<int64_t>(piece.size());
    bytes.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status BufferSink::Begin(const DenseSpec& spec) {
  spec_ = spec;
  bytes_.clear();
  return absl::OkStatus();
}

absl::Status BufferSink::Append(absl::Span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return absl::OkStatus();
}

}  // namespace api
}  // namespace crout
