// SPDX-License-Identifier: Apache-2.0

// Destinations of the matrices that calls return.
#ifndef CROUT_CROUT_MATRIX_SINK_H_
#define CROUT_CROUT_MATRIX_SINK_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "crout/types.h"

namespace crout {
inline namespace api {

// Receives one dense matrix, or the matrices of a batch, on the thread of the call. An error of a
// method ends the call with that error.
class MatrixSink {
 public:
  virtual ~MatrixSink() = default;

  // Called before the data. A retried call calls it again; the sink must then discard all earlier
  // data.
  virtual absl::Status Begin(const DenseSpec& spec) = 0;

  // Receives the next bytes, in the order of the spec's layout. A successful call delivers exactly
  // rows * cols * element size bytes, a failed call at most as many.
  virtual absl::Status Append(absl::Span<const std::byte> bytes) = 0;

  // Called before the matrices of a batch: Begin() and Append() then follow for each of `count`
  // matrices. The default refuses batches; BatchMatrices (crout/batch.h) takes them.
  virtual absl::Status BeginBatch(int64_t count);
};

// Writes to the caller's memory, without gaps and in the layout of the returned matrix. The memory
// must have the type and number of elements of that matrix and, if `rows` and `cols` are given, its
// shape; otherwise the call returns INVALID_ARGUMENT. The contents are undefined unless the call
// succeeds.
class SpanSink : public MatrixSink {
 public:
  explicit SpanSink(absl::Span<double> values);
  explicit SpanSink(absl::Span<float> values);
  explicit SpanSink(absl::Span<std::complex<double>> values);
  explicit SpanSink(absl::Span<std::complex<float>> values);
  // T: one of the types of the other constructors.
  template <class T>
  SpanSink(absl::Span<T> values, int64_t rows, int64_t cols) : SpanSink(values) {
    shape_.emplace(rows, cols);
  }

  absl::Status Begin(const DenseSpec& spec) override;
  absl::Status Append(absl::Span<const std::byte> bytes) override;

 private:
  const absl::Span<std::byte> memory_;
  const Dtype dtype_;
  std::optional<std::pair<int64_t, int64_t>> shape_;
  absl::Span<std::byte> rest_;
};

// Writes to the caller's memory with a stride in elements, as in MatrixSource::Strided. Memory
// between the columns (row-major: rows) is not changed. The returned matrix must have exactly this
// shape, layout and type; otherwise the call returns INVALID_ARGUMENT. The contents are undefined
// unless the call succeeds.
class StridedSink : public MatrixSink {
 public:
  StridedSink(double* values, int64_t rows, int64_t cols, int64_t stride,
              StorageOrder layout = StorageOrder::kColumnMajor);
  StridedSink(float* values, int64_t rows, int64_t cols, int64_t stride,
              StorageOrder layout = StorageOrder::kColumnMajor);
  StridedSink(std::complex<double>* values, int64_t rows, int64_t cols, int64_t stride,
              StorageOrder layout = StorageOrder::kColumnMajor);
  StridedSink(std::complex<float>* values, int64_t rows, int64_t cols, int64_t stride,
              StorageOrder layout = StorageOrder::kColumnMajor);

  absl::Status Begin(const DenseSpec& spec) override;
  absl::Status Append(absl::Span<const std::byte> bytes) override;

 private:
  StridedSink(std::byte* memory, Dtype dtype, int64_t rows, int64_t cols, int64_t stride,
              StorageOrder layout);

  std::byte* const memory_;
  const int64_t stride_;  // elements
  DenseSpec expected_;
  int64_t written_ = 0;  // bytes
};

// Stores the matrix in its own memory, which grows as data arrives.
class BufferSink : public MatrixSink {
 public:
  absl::Status Begin(const DenseSpec& spec) override;
  absl::Status Append(absl::Span<const std::byte> bytes) override;

  const DenseSpec& spec() const { return spec_; }
  // The elements, in the order of the spec's layout. T: the type of spec().dtype.
  template <class T>
  absl::Span<const T> values() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  // Moves the bytes of the elements out.
  std::vector<std::byte> TakeBytes() { return std::move(bytes_); }

 private:
  DenseSpec spec_;
  std::vector<std::byte> bytes_;
};

}  // namespace api
}  // namespace crout

#endif  // CROUT_CROUT_MATRIX_SINK_H_
