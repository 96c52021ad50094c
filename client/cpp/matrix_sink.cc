#include "client/cpp/matrix_sink.h"

#include <cstdint>
#include <cstring>

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
  if (spec.dtype() != dtype_ ||
      static_cast<__int128>(spec.rows()) * spec.cols() != static_cast<__int128>(elements)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the result is ", spec.rows(), " x ", spec.cols(), " ", v1::Dtype_Name(spec.dtype()),
        ", but there is room for ", elements, " elements of ", v1::Dtype_Name(dtype_)));
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
