// Dense matrices as Matrix Market `array` files.
#ifndef CROUT_CLIENT_CLI_ARRAY_WRITER_H_
#define CROUT_CLIENT_CLI_ARRAY_WRITER_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "crout/matrix_sink.h"

namespace crout::cli {

// Writes elements in column-major order, each in the fewest digits that read back to the same
// value. Errors of the file are reported by Close.
class ArrayWriter {
 public:
  // `field` is "real", "integer" or "complex". Replaces the file.
  absl::Status Open(const std::string& path, const char* field, int64_t rows, int64_t cols);
  template <class T>
  void Add(T value);
  template <class T>
  void Add(std::complex<T> value);
  absl::Status Close();

 private:
  std::string path_;
  std::ofstream file_;
};

// The field of a file with such elements: "real" or "complex".
const char* FieldOf(v1::Dtype dtype);

// Hands the elements of a matrix out one by one, wherever the pieces of it are cut. F is called as
// f(index, value), value being float, double or std::complex of one of them.
class ElementDecoder {
 public:
  void Begin(v1::Dtype dtype);
  template <class F>
  void Append(absl::Span<const std::byte> bytes, F f);

 private:
  // F is called with the element at `at`.
  template <class F>
  void Read(const std::byte* at, F f) const;

  v1::Dtype dtype_ = v1::DTYPE_FLOAT64;
  int64_t index_ = 0;
  size_t partial_size_ = 0;
  std::byte partial_[sizeof(std::complex<double>)];
};

// A sink that writes the matrix, which must be column-major, to a file.
class ArrayFileSink : public client::MatrixSink {
 public:
  explicit ArrayFileSink(std::string path) : path_(std::move(path)) {}

  absl::Status Begin(const v1::DenseSpec& spec) override;
  absl::Status Append(absl::Span<const std::byte> bytes) override;
  absl::Status Close() { return writer_.Close(); }

 private:
  const std::string path_;
  ArrayWriter writer_;
  ElementDecoder decoder_;
};

// The same for a file that need not be asked for: no path, no file.
class OptionalFileSink : public client::MatrixSink {
 public:
  explicit OptionalFileSink(const std::string& path) {
    if (!path.empty()) file_.emplace(path);
  }
  absl::Status Begin(const v1::DenseSpec& spec) override {
    return file_ ? file_->Begin(spec) : absl::OkStatus();
  }
  absl::Status Append(absl::Span<const std::byte> bytes) override {
    return file_ ? file_->Append(bytes) : absl::OkStatus();
  }
  absl::Status Close() { return file_ ? file_->Close() : absl::OkStatus(); }

 private:
  std::optional<ArrayFileSink> file_;
};

template <class F>
void ElementDecoder::Read(const std::byte* at, F f) const {
  const auto read = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    f(value);
  };
  switch (dtype_) {
    case v1::DTYPE_FLOAT32:
      return read(float{});
    case v1::DTYPE_COMPLEX64:
      return read(std::complex<float>{});
    case v1::DTYPE_COMPLEX128:
      return read(std::complex<double>{});
    default:
      return read(double{});
  }
}

template <class F>
void ElementDecoder::Append(absl::Span<const std::byte> bytes, F f) {
  const size_t size = client::ElementSize(dtype_);
  const auto emit = [&](const std::byte* at) { Read(at, [&](auto value) { f(index_++, value); }); };
  while (!bytes.empty()) {
    if (partial_size_ == 0 && bytes.size() >= size) {
      emit(bytes.data());
      bytes.remove_prefix(size);
      continue;
    }
    partial_[partial_size_++] = bytes.front();
    bytes.remove_prefix(1);
    if (partial_size_ < size) continue;
    partial_size_ = 0;
    emit(partial_);
  }
}

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_ARRAY_WRITER_H_
