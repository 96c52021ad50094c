// SPDX-License-Identifier: Apache-2.0

#include "crout/matrix_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/convert.h"
#include "client/cpp/payload.h"

namespace crout {
inline namespace api {
namespace {

using internal::BorrowCount;
using internal::BorrowedSlice;
using internal::ChunkReader;
using internal::Payload;
using internal::StridedVectors;

template <class T>
absl::Span<const std::byte> AsBytes(absl::Span<const T> values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

class MemoryReader : public ChunkReader {
 public:
  explicit MemoryReader(std::vector<absl::Span<const std::byte>> parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) size_ += static_cast<int64_t>(part.size());
  }

  int64_t size() const override { return size_; }

  absl::StatusOr<grpc::Slice> Next(size_t limit, BorrowCount* borrowed,
                                   absl::FunctionRef<absl::Status()>) override {
    while (next_ < parts_.size() && parts_[next_].empty()) ++next_;
    if (next_ == parts_.size()) return grpc::Slice();
    const auto chunk = parts_[next_].subspan(0, limit);
    parts_[next_].remove_prefix(chunk.size());
    return BorrowedSlice(chunk, borrowed);
  }

 private:
  int64_t size_ = 0;
  std::vector<absl::Span<const std::byte>> parts_;  // remaining parts
  size_t next_ = 0;
};

// Copies short columns into chunks, because one field for each column would make thousands of
// fields in a message.
class StridedReader : public ChunkReader {
 public:
  explicit StridedReader(const StridedVectors& vectors)
      : vectors_(vectors), size_(vectors.count * vectors.length) {}

  int64_t size() const override { return size_; }

  absl::StatusOr<grpc::Slice> Next(size_t limit, BorrowCount*,
                                   absl::FunctionRef<absl::Status()>) override {
    const int64_t wanted = std::min(static_cast<int64_t>(limit), size_ - read_);
    if (wanted == 0) return grpc::Slice();
    grpc::Slice chunk(static_cast<size_t>(wanted));
    uint8_t* to = const_cast<uint8_t*>(chunk.begin());
    for (int64_t left = wanted; left > 0;) {
      const int64_t offset = read_ % vectors_.length;
      const int64_t piece = std::min(left, vectors_.length - offset);
      const std::byte* vector = vectors_.begin + read_ / vectors_.length * vectors_.stride;
      std::memcpy(to, vector + offset, static_cast<size_t>(piece));
      to += piece;
      read_ += piece;
      left -= piece;
    }
    return chunk;
  }

 private:
  const StridedVectors vectors_;
  const int64_t size_;
  int64_t read_ = 0;
};

class OnesReader : public ChunkReader {
 public:
  OnesReader(int64_t size, Dtype dtype) : size_(size), block_(Block(size, dtype)) {}

  int64_t size() const override { return size_; }

  absl::StatusOr<grpc::Slice> Next(size_t limit, BorrowCount*,
                                   absl::FunctionRef<absl::Status()>) override {
    // A chunk may end within an element: continue at that byte of an element, for elements of any
    // size up to 16 bytes.
    const size_t begin = static_cast<size_t>(sent_) % sizeof(std::complex<double>);
    const int64_t count = std::min<int64_t>(std::min(limit, block_.size() - begin), size_ - sent_);
    sent_ += count;
    return block_.sub(begin, begin + static_cast<size_t>(count));
  }

 private:
  static grpc::Slice Block(int64_t size, Dtype dtype) {
    switch (dtype) {
      case Dtype::kFloat32:
        return Block<float>(size);
      case Dtype::kComplex64:
        return Block<std::complex<float>>(size);
      case Dtype::kComplex128:
        return Block<std::complex<double>>(size);
      default:
        return Block<double>(size);
    }
  }

  template <class T>
  static grpc::Slice Block(int64_t size) {
    constexpr int64_t kMaxChunk = int64_t{1} << 20;  // the payload of one message
    const std::vector<T> ones(static_cast<size_t>(std::min(size, kMaxChunk)) / sizeof(T), T{1});
    return {ones.data(), ones.size() * sizeof(T)};
  }

  const int64_t size_;
  const grpc::Slice block_;  // sent repeatedly
  int64_t sent_ = 0;
};

class FileReader : public ChunkReader {
 public:
  static absl::StatusOr<std::unique_ptr<ChunkReader>> Open(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
    struct stat info;
    const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    return std::unique_ptr<ChunkReader>(new FileReader(fd, path, regular ? info.st_size : -1));
  }
  ~FileReader() override { close(fd_); }

  int64_t size() const override { return size_; }

  absl::StatusOr<grpc::Slice> Next(size_t limit, BorrowCount*,
                                   absl::FunctionRef<absl::Status()> while_silent) override {
    grpc::Slice chunk(limit);
    size_t filled = 0;
    // Fills the chunk, because the small pieces of a pipe would make hundreds of fields in a
    // message.
    while (filled < limit) {
      // Without poll(), a pipe that has no writer yet would appear to be at its end.
      pollfd input{fd_, POLLIN, 0};
      if (size_ < 0 && poll(&input, 1, kSilentMillis) == 0) {
        if (absl::Status status = while_silent(); !status.ok()) return status;
        continue;
      }
      const ssize_t got = read(fd_, const_cast<uint8_t*>(chunk.begin()) + filled, limit - filled);
      if (got == 0) break;
      if (got > 0) {
        filled += static_cast<size_t>(got);
      } else if (errno != EINTR && errno != EAGAIN) {
        return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
      }
    }
    return chunk.sub(0, filled);
  }

 private:
  FileReader(int fd, std::string path, int64_t size)
      : fd_(fd), path_(std::move(path)), size_(size) {}

  static constexpr int kSilentMillis = 100;

  const int fd_;
  const std::string path_;
  const int64_t size_;
};

Payload PayloadOfShape(const DenseSpec& shape) {
  Payload payload;
  v1::DenseSpec& dense = *payload.spec.mutable_dense();
  dense.set_dtype(static_cast<v1::Dtype>(shape.dtype));
  dense.set_layout(static_cast<v1::Layout>(shape.layout));
  dense.set_rows(shape.rows);
  dense.set_cols(shape.cols);
  return payload;
}

// Returns the last index of an array that is not empty; 0 for a negative index, which the server
// rejects.
int64_t LastOf(absl::Span<const std::byte> indices, size_t index_bytes) {
  int64_t wide = 0;
  int32_t narrow = 0;
  const std::byte* const last = indices.data() + indices.size() - index_bytes;
  if (index_bytes == sizeof narrow) {
    std::memcpy(&narrow, last, sizeof narrow);
    wide = narrow;
  } else {
    std::memcpy(&wide, last, sizeof wide);
  }
  return std::max<int64_t>(wide, 0);
}

absl::Span<const std::byte> FirstOf(absl::Span<const std::byte> bytes, int64_t count, size_t size) {
  return bytes.first(static_cast<size_t>(count) * size);
}

}  // namespace

MatrixSource::MatrixSource(Payload payload)
    : payload_(std::make_shared<const Payload>(std::move(payload))) {}

MatrixSource MatrixSource::DenseBytes(Dtype dtype, absl::Span<const std::byte> bytes, int64_t rows,
                                      int64_t cols, StorageOrder layout) {
  Payload payload = PayloadOfShape({dtype, layout, rows, cols});
  payload.bytes = {bytes};
  const size_t count = bytes.size() / ElementSize(dtype);
  if (rows < 0 || cols < 0 || static_cast<__int128>(rows) * cols != static_cast<__int128>(count)) {
    payload.status = absl::InvalidArgumentError(
        absl::StrCat("a ", rows, " x ", cols, " matrix, but ", count, " elements"));
  }
  return MatrixSource(std::move(payload));
}

MatrixSource MatrixSource::Dense(absl::Span<const double> values, int64_t rows, int64_t cols,
                                 StorageOrder layout) {
  return DenseBytes(Dtype::kFloat64, AsBytes(values), rows, cols, layout);
}

MatrixSource MatrixSource::Dense(absl::Span<const float> values, int64_t rows, int64_t cols,
                                 StorageOrder layout) {
  return DenseBytes(Dtype::kFloat32, AsBytes(values), rows, cols, layout);
}

MatrixSource MatrixSource::Dense(absl::Span<const std::complex<double>> values, int64_t rows,
                                 int64_t cols, StorageOrder layout) {
  return DenseBytes(Dtype::kComplex128, AsBytes(values), rows, cols, layout);
}

MatrixSource MatrixSource::Dense(absl::Span<const std::complex<float>> values, int64_t rows,
                                 int64_t cols, StorageOrder layout) {
  return DenseBytes(Dtype::kComplex64, AsBytes(values), rows, cols, layout);
}

MatrixSource MatrixSource::StridedBytes(Dtype dtype, const void* values, int64_t rows, int64_t cols,
                                        int64_t stride, StorageOrder layout) {
  const bool by_rows = layout == StorageOrder::kRowMajor;
  const int64_t count = by_rows ? rows : cols;
  const int64_t length = by_rows ? cols : rows;
  const auto element = static_cast<int64_t>(ElementSize(dtype));
  const bool empty = rows == 0 || cols == 0;
  if (rows < 0 || cols < 0 || (!empty && (stride < length || values == nullptr)) ||
      static_cast<__int128>(count) * std::max<int64_t>(stride, 1) >
          std::numeric_limits<int64_t>::max() / element) {
    return Invalid(absl::InvalidArgumentError(
        absl::StrCat("cannot send a ", rows, " x ", cols, " matrix of stride ", stride,
                     values == nullptr ? " from a null pointer" : "")));
  }
  const auto* begin = static_cast<const std::byte*>(values);
  Payload payload = PayloadOfShape({dtype, layout, rows, cols});
  if (empty) return MatrixSource(std::move(payload));
  if (stride == length || count == 1) {
    payload.bytes = {{begin, static_cast<size_t>(rows * cols * element)}};
  } else {
    payload.vectors = {begin, count, length * element, stride * element};
  }
  return MatrixSource(std::move(payload));
}

MatrixSource MatrixSource::Strided(const double* values, int64_t rows, int64_t cols, int64_t stride,
                                   StorageOrder layout) {
  return StridedBytes(Dtype::kFloat64, values, rows, cols, stride, layout);
}

MatrixSource MatrixSource::Strided(const float* values, int64_t rows, int64_t cols, int64_t stride,
                                   StorageOrder layout) {
  return StridedBytes(Dtype::kFloat32, values, rows, cols, stride, layout);
}

MatrixSource MatrixSource::Strided(const std::complex<double>* values, int64_t rows, int64_t cols,
                                   int64_t stride, StorageOrder layout) {
  return StridedBytes(Dtype::kComplex128, values, rows, cols, stride, layout);
}

MatrixSource MatrixSource::Strided(const std::complex<float>* values, int64_t rows, int64_t cols,
                                   int64_t stride, StorageOrder layout) {
  return StridedBytes(Dtype::kComplex64, values, rows, cols, stride, layout);
}

MatrixSource MatrixSource::SparseBytes(Dtype dtype, SparseFormat format, size_t index_bytes,
                                       const Array& values, const Array& rows_of,
                                       const Array& column_index, int64_t rows, int64_t cols) {
  Payload payload;
  v1::SparseSpec& spec = *payload.spec.mutable_sparse();
  spec.set_dtype(static_cast<v1::Dtype>(dtype));
  spec.set_format(static_cast<v1::SparseFormat>(format));
  spec.set_rows(rows);
  spec.set_cols(cols);
  spec.set_index_bytes(static_cast<int32_t>(index_bytes));
  const bool by_entry = format == SparseFormat::kCoordinate;
  if (rows < 0 || cols < 0 || column_index.count != values.count ||
      rows_of.count != (by_entry ? values.count : rows + 1)) {
    payload.status = absl::InvalidArgumentError(absl::StrCat(
        "a sparse ", rows, " x ", cols, " matrix of ", values.count, " values, ",
        column_index.count, " column indices and ", rows_of.count,
        by_entry ? " row indices" : " row starts, of which there should be one more than rows"));
    return MatrixSource(std::move(payload));
  }
  const int64_t entries =
      by_entry ? values.count : std::min(LastOf(rows_of.bytes, index_bytes), values.count);
  spec.set_entries(entries);
  payload.bytes = {rows_of.bytes, FirstOf(column_index.bytes, entries, index_bytes),
                   FirstOf(values.bytes, entries, ElementSize(dtype))};
  return MatrixSource(std::move(payload));
}

MatrixSource MatrixSource::SparseValueBytes(Dtype dtype, const Array& values,
                                            absl::string_view pattern_digest) {
  Payload payload;
  payload.spec.mutable_values()->set_dtype(static_cast<v1::Dtype>(dtype));
  payload.spec.mutable_values()->set_entries(values.count);
  payload.spec.mutable_values()->set_pattern_digest(std::string(pattern_digest));
  payload.bytes = {values.bytes};
  return MatrixSource(std::move(payload));
}

MatrixSource MatrixSource::Invalid(absl::Status why) {
  Payload payload;
  payload.status = std::move(why);
  return MatrixSource(std::move(payload));
}

MatrixSource MatrixSource::Ones(int64_t rows, int64_t cols, Dtype dtype) {
  Payload payload = PayloadOfShape({.dtype = dtype, .rows = rows, .cols = cols});
  const size_t element = ElementSize(dtype);
  const __int128 elements = static_cast<__int128>(rows) * cols;
  if (rows < 0 || cols < 0 || element == 0 ||
      elements > std::numeric_limits<int64_t>::max() / static_cast<int64_t>(element)) {
    payload.status = absl::InvalidArgumentError(
        absl::StrCat("cannot send ", rows, " x ", cols, " ones of ", Name(dtype)));
  } else {
    payload.ones = static_cast<int64_t>(elements) * static_cast<int64_t>(element);
  }
  return MatrixSource(std::move(payload));
}

MatrixSource MatrixSource::MatrixMarket(absl::string_view text, Dtype dtype) {
  Payload payload;
  payload.spec.mutable_matrix_market()->set_dtype(static_cast<v1::Dtype>(dtype));
  payload.bytes = {AsBytes(absl::MakeConstSpan(text.data(), text.size()))};
  return MatrixSource(std::move(payload));
}

MatrixSource MatrixSource::MatrixMarketFile(std::string path, Dtype dtype) {
  Payload payload;
  payload.spec.mutable_matrix_market()->set_dtype(static_cast<v1::Dtype>(dtype));
  payload.path = std::move(path);
  return MatrixSource(std::move(payload));
}

MatrixSource MatrixSource::Batch(const BatchSource& source) {
  auto spec = internal::BatchPayload(source).Batch();
  if (!spec.ok()) return Invalid(spec.status());
  Payload payload;
  *payload.spec.mutable_batch() = *std::move(spec);
  payload.batch = &source;
  return MatrixSource(std::move(payload));
}

MatrixSource MatrixSource::BatchRhs(const BatchSource& source) {
  auto spec = internal::BatchPayload(source).BatchRhs();
  if (!spec.ok()) return Invalid(spec.status());
  Payload payload;
  *payload.spec.mutable_batch_rhs() = *std::move(spec);
  payload.batch = &source;
  return MatrixSource(std::move(payload));
}

Dtype MatrixSource::dtype() const {
  const v1::MatrixSpec& spec = payload_->spec;
  const auto dtype = [&] {
    switch (spec.format_case()) {
      case v1::MatrixSpec::kDense:
        return spec.dense().dtype();
      case v1::MatrixSpec::kMatrixMarket:
        return spec.matrix_market().dtype();
      case v1::MatrixSpec::kSparse:
        return spec.sparse().dtype();
      case v1::MatrixSpec::kValues:
        return spec.values().dtype();
      case v1::MatrixSpec::kBatch:
        return spec.batch().dtype();
      case v1::MatrixSpec::kBatchRhs:
        return spec.batch_rhs().dtype();
      case v1::MatrixSpec::FORMAT_NOT_SET:
        break;
    }
    return v1::DTYPE_UNSPECIFIED;
  }();
  return dtype == v1::DTYPE_UNSPECIFIED ? Dtype::kFloat64 : static_cast<Dtype>(dtype);
}

absl::StatusOr<MatrixSource> MatrixSource::Copy() const {
  absl::StatusOr<internal::Payload> copy = payload_->Copy();
  if (!copy.ok()) return copy.status();
  return MatrixSource(*std::move(copy));
}

namespace internal {

bool Payload::repeatable() const {
  struct stat info;
  // A missing file counts as repeatable; Open() reports it.
  return path.empty() || stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode);
}

absl::StatusOr<std::unique_ptr<ChunkReader>> Payload::Open() const {
  if (!status.ok()) return status;
  if (batch != nullptr) return BatchPayload(*batch).Open(spec.has_batch_rhs());
  if (!path.empty()) return FileReader::Open(path);
  if (ones >= 0) {
    return std::make_unique<OnesReader>(ones, Read<DenseSpec>(spec.dense()).dtype);
  }
  if (vectors.count > 0) return std::make_unique<StridedReader>(vectors);
  return std::make_unique<MemoryReader>(bytes);
}

absl::StatusOr<Payload> Payload::Copy() const {
  if (!status.ok()) return status;
  Payload copy;
  copy.spec = spec;
  copy.path = path;
  copy.ones = ones;
  if (!path.empty() || ones >= 0) return copy;
  auto reader = Open();
  if (!reader.ok()) return reader.status();
  const auto owned_bytes = std::make_shared<std::vector<std::byte>>();
  owned_bytes->reserve(static_cast<size_t>((*reader)->size()));
  BorrowCount borrowed;
  while (true) {
    const auto chunk =
        (*reader)->Next(MessageWriter::kChunkBytes, &borrowed, [] { return absl::OkStatus(); });
    if (!chunk.ok()) return chunk.status();
    if (chunk->size() == 0) break;
    const auto* const begin = reinterpret_cast<const std::byte*>(chunk->begin());
    owned_bytes->insert(owned_bytes->end(), begin, begin + chunk->size());
  }
  copy.bytes = {absl::MakeConstSpan(*owned_bytes)};
  copy.owned = owned_bytes;
  return copy;
}

}  // namespace internal
}  // namespace api
}  // namespace crout
