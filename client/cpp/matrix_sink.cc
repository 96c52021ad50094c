// SPDX-License-Identifier: Apache-2.0

#include "crout/matrix_sink.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace crout::client {

size_t ElementSize(v1::Dtype dtype) {
  switch (dtype) {
    case v1::DTYPE_UNSPECIFIED:
    case v1::DTYPE_FLOAT64:
      return sizeof(double);
    case v1::DTYPE_FLOAT32:
      return sizeof(float);
    case v1::DTYPE_COMPLEX128:
      return sizeof(std::complex<double>);
    case v1::DTYPE_COMPLEX64:
      return sizeof(std::complex<float>);
    default:
      return 0;
  }
}

SpanSink::SpanSink(absl::Span<double> values)
    : memory_(reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(double)),
      dtype_(v1::DTYPE_FLOAT64) {}

SpanSink::SpanSink(absl::Span<float> values)
    : memory_(reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float)),
      dtype_(v1::DTYPE_FLOAT32) {}

SpanSink::SpanSink(absl::Span<std::complex<double>> values)
    : memory_(reinterpret_cast<std::byte*>(values.data()),
              values.size() * sizeof(std::complex<double>)),
      dtype_(v1::DTYPE_COMPLEX128) {}

SpanSink::SpanSink(absl::Span<std::complex<float>> values)
    : memory_(reinterpret_cast<std::byte*>(values.data()),
              values.size() * sizeof(std::complex<float>)),
      dtype_(v1::DTYPE_COMPLEX64) {}

absl::Status SpanSink::Begin(const v1::DenseSpec& spec) {
  const size_t elements = memory_.size() / ElementSize(dtype_);
  const std::pair<int64_t, int64_t> shape(spec.rows(), spec.cols());
  if (spec.dtype() != dtype_ || shape_.value_or(shape) != shape ||
      static_cast<__int128>(spec.rows()) * spec.cols() != static_cast<__int128>(elements)) {
    const std::string place =
        shape_ ? absl::StrCat(shape_->first, " x ", shape_->second, " in ") : std::string();
    return absl::InvalidArgumentError(absl::StrCat(
        "the result is ", spec.rows(), " x ", spec.cols(), " ", v1::Dtype_Name(spec.dtype()),
        ", but there is room for ", place, elements, " elements of ", v1::Dtype_Name(dtype_)));
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

StridedSink::StridedSink(std::byte* memory, v1::Dtype dtype, int64_t rows, int64_t cols,
                         int64_t stride, v1::Layout layout)
    : memory_(memory), stride_(stride) {
  expected_.set_dtype(dtype);
  expected_.set_layout(layout);
  expected_.set_rows(rows);
  expected_.set_cols(cols);
}

StridedSink::StridedSink(double* values, int64_t rows, int64_t cols, int64_t stride,
                         v1::Layout layout)
    : StridedSink(reinterpret_cast<std::byte*>(values), v1::DTYPE_FLOAT64, rows, cols, stride,
                  layout) {}

StridedSink::StridedSink(float* values, int64_t rows, int64_t cols, int64_t stride,
                         v1::Layout layout)
    : StridedSink(reinterpret_cast<std::byte*>(values), v1::DTYPE_FLOAT32, rows, cols, stride,
                  layout) {}

StridedSink::StridedSink(std::complex<double>* values, int64_t rows, int64_t cols, int64_t stride,
                         v1::Layout layout)
    : StridedSink(reinterpret_cast<std::byte*>(values), v1::DTYPE_COMPLEX128, rows, cols, stride,
                  layout) {}

StridedSink::StridedSink(std::complex<float>* values, int64_t rows, int64_t cols, int64_t stride,
                         v1::Layout layout)
    : StridedSink(reinterpret_cast<std::byte*>(values), v1::DTYPE_COMPLEX64, rows, cols, stride,
                  layout) {}

absl::Status StridedSink::Begin(const v1::DenseSpec& spec) {
  const bool by_rows = spec.layout() == v1::LAYOUT_ROW_MAJOR;
  const bool empty = spec.rows() == 0 || spec.cols() == 0;
  const int64_t length = by_rows ? spec.cols() : spec.rows();
  // Largest stride for which the extent of the matrix in bytes fits in ptrdiff_t.
  const int64_t longest = std::numeric_limits<ptrdiff_t>::max() /
                          std::max<int64_t>(1, by_rows ? spec.rows() : spec.cols()) /
                          static_cast<int64_t>(ElementSize(expected_.dtype()));
  if (spec.dtype() != expected_.dtype() || spec.rows() != expected_.rows() ||
      spec.cols() != expected_.cols() || by_rows != (expected_.layout() == v1::LAYOUT_ROW_MAJOR) ||
      (!empty && (memory_ == nullptr || stride_ < length || stride_ > longest))) {
    return absl::InvalidArgumentError(absl::StrCat("the result, ", spec.ShortDebugString(),
                                                   ", does not fit the output, which has stride ",
                                                   stride_, " for ", expected_.ShortDebugString()));
  }
  written_ = 0;
  return absl::OkStatus();
}

absl::Status StridedSink::Append(absl::Span<const std::byte> bytes) {
  const auto element = static_cast<int64_t>(ElementSize(expected_.dtype()));
  const bool by_rows = expected_.layout() == v1::LAYOUT_ROW_MAJOR;
  const int64_t length = element * (by_rows ? expected_.cols() : expected_.rows());
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

absl::Status BufferSink::Begin(const v1::DenseSpec& spec) {
  spec_ = spec;
  bytes_.clear();
  return absl::OkStatus();
}

absl::Status BufferSink::Append(absl::Span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return absl::OkStatus();
}

}  // namespace crout::client
