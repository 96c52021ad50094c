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
#include "client/cpp/message_writer.h"
#include "crout/batch_data.h"
#include "crout/matrix_sink.h"

namespace crout::client {
namespace {

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
  OnesReader(int64_t size, v1::Dtype dtype) : size_(size), block_(Block(size, dtype)) {}

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
  static grpc::Slice Block(int64_t size, v1::Dtype dtype) {
    switch (dtype) {
      case v1::DTYPE_FLOAT32:
        return Block<float>(size);
      case v1::DTYPE_COMPLEX64:
        return Block<std::complex<float>>(size);
      case v1::DTYPE_COMPLEX128:
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

}  // namespace

MatrixSource MatrixSource::OfShape(v1::Dtype dtype, int64_t rows, int64_t cols, v1::Layout layout) {
  MatrixSource source;
  v1::DenseSpec* dense = source.spec_.mutable_dense();
  dense->set_dtype(dtype);
  dense->set_layout(layout);
  dense->set_rows(rows);
  dense->set_cols(cols);
  return source;
}

MatrixSource MatrixSource::DenseBytes(v1::Dtype dtype, size_t element_size,
                                      absl::Span<const std::byte> bytes, int64_t rows, int64_t cols,
                                      v1::Layout layout) {
  MatrixSource source = OfShape(dtype, rows, cols, layout);
  source.bytes_ = {bytes};
  const auto elements = static_cast<__int128>(bytes.size() / element_size);
  if (rows < 0 || cols < 0 || static_cast<__int128>(rows) * cols != elements) {
    source.status_ = absl::InvalidArgumentError(absl::StrCat(
        "a ", rows, " x ", cols, " matrix, but ", bytes.size() / element_size, " elements"));
  }
  return source;
}

MatrixSource MatrixSource::Dense(absl::Span<const double> values, int64_t rows, int64_t cols,
                                 v1::Layout layout) {
  return DenseBytes(v1::DTYPE_FLOAT64, sizeof(double), AsBytes(values), rows, cols, layout);
}

MatrixSource MatrixSource::Dense(absl::Span<const float> values, int64_t rows, int64_t cols,
                                 v1::Layout layout) {
  return DenseBytes(v1::DTYPE_FLOAT32, sizeof(float), AsBytes(values), rows, cols, layout);
}

MatrixSource MatrixSource::Dense(absl::Span<const std::complex<double>> values, int64_t rows,
                                 int64_t cols, v1::Layout layout) {
  return DenseBytes(v1::DTYPE_COMPLEX128, sizeof values[0], AsBytes(values), rows, cols, layout);
}

MatrixSource MatrixSource::Dense(absl::Span<const std::complex<float>> values, int64_t rows,
                                 int64_t cols, v1::Layout layout) {
  return DenseBytes(v1::DTYPE_COMPLEX64, sizeof values[0], AsBytes(values), rows, cols, layout);
}

MatrixSource MatrixSource::StridedBytes(v1::Dtype dtype, size_t element_size, const void* values,
                                        int64_t rows, int64_t cols, int64_t stride,
                                        v1::Layout layout) {
  const bool by_rows = layout == v1::LAYOUT_ROW_MAJOR;
  const int64_t count = by_rows ? rows : cols;
  const int64_t length = by_rows ? cols : rows;
  const auto element = static_cast<int64_t>(element_size);
  const bool empty = rows == 0 || cols == 0;
  if (rows < 0 || cols < 0 || (!empty && (stride < length || values == nullptr)) ||
      static_cast<__int128>(count) * std::max<int64_t>(stride, 1) >
          std::numeric_limits<int64_t>::max() / element) {
    return Invalid(absl::InvalidArgumentError(
        absl::StrCat("cannot send a ", rows, " x ", cols, " matrix of stride ", stride,
                     values == nullptr ? " from a null pointer" : "")));
  }
  const auto* begin = static_cast<const std::byte*>(values);
  MatrixSource source = OfShape(dtype, rows, cols, layout);
  if (empty) return source;
  if (stride == length || count == 1) {
    source.bytes_ = {{begin, static_cast<size_t>(rows * cols * element)}};
  } else {
    source.vectors_ = {begin, count, length * element, stride * element};
  }
  return source;
}

MatrixSource MatrixSource::Strided(const double* values, int64_t rows, int64_t cols, int64_t stride,
                                   v1::Layout layout) {
  return StridedBytes(v1::DTYPE_FLOAT64, sizeof *values, values, rows, cols, stride, layout);
}

MatrixSource MatrixSource::Strided(const float* values, int64_t rows, int64_t cols, int64_t stride,
                                   v1::Layout layout) {
  return StridedBytes(v1::DTYPE_FLOAT32, sizeof *values, values, rows, cols, stride, layout);
}

MatrixSource MatrixSource::Strided(const std::complex<double>* values, int64_t rows, int64_t cols,
                                   int64_t stride, v1::Layout layout) {
  return StridedBytes(v1::DTYPE_COMPLEX128, sizeof *values, values, rows, cols, stride, layout);
}

MatrixSource MatrixSource::Strided(const std::complex<float>* values, int64_t rows, int64_t cols,
                                   int64_t stride, v1::Layout layout) {
  return StridedBytes(v1::DTYPE_COMPLEX64, sizeof *values, values, rows, cols, stride, layout);
}

namespace {

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

MatrixSource MatrixSource::SparseBytes(v1::Dtype dtype, v1::SparseFormat format, size_t index_bytes,
                                       const Array& values, const Array& rows_of,
                                       const Array& column_index, int64_t rows, int64_t cols) {
  MatrixSource source;
  v1::SparseSpec& spec = *source.spec_.mutable_sparse();
  spec.set_dtype(dtype);
  spec.set_format(format);
  spec.set_rows(rows);
  spec.set_cols(cols);
  spec.set_index_bytes(static_cast<int32_t>(index_bytes));
  const bool by_entry = format == v1::SPARSE_FORMAT_COORDINATE;
  if (rows < 0 || cols < 0 || column_index.count != values.count ||
      rows_of.count != (by_entry ? values.count : rows + 1)) {
    source.status_ = absl::InvalidArgumentError(absl::StrCat(
        "a sparse ", rows, " x ", cols, " matrix of ", values.count, " values, ",
        column_index.count, " column indices and ", rows_of.count,
        by_entry ? " row indices" : " row starts, of which there should be one more than rows"));
    return source;
  }
  const int64_t entries =
      by_entry ? values.count : std::min(LastOf(rows_of.bytes, index_bytes), values.count);
  spec.set_entries(entries);
  source.bytes_ = {rows_of.bytes, FirstOf(column_index.bytes, entries, index_bytes),
                   FirstOf(values.bytes, entries, ElementSize(dtype))};
  return source;
}

MatrixSource MatrixSource::SparseValueBytes(v1::Dtype dtype, const Array& values,
                                            absl::string_view pattern_digest) {
  MatrixSource source;
  source.spec_.mutable_values()->set_dtype(dtype);
  source.spec_.mutable_values()->set_entries(values.count);
  source.spec_.mutable_values()->set_pattern_digest(std::string(pattern_digest));
  source.bytes_ = {values.bytes};
  return source;
}

MatrixSource MatrixSource::Invalid(absl::Status why) {
  MatrixSource source;
  source.status_ = std::move(why);
  return source;
}

MatrixSource MatrixSource::Ones(int64_t rows, int64_t cols, v1::Dtype dtype) {
  MatrixSource source = OfShape(dtype, rows, cols, v1::LAYOUT_COLUMN_MAJOR);
  const size_t element = dtype == v1::DTYPE_UNSPECIFIED ? 0 : ElementSize(dtype);
  const __int128 elements = static_cast<__int128>(rows) * cols;
  if (rows < 0 || cols < 0 || element == 0 ||
      elements > std::numeric_limits<int64_t>::max() / static_cast<int64_t>(element)) {
    source.status_ = absl::InvalidArgumentError(
        absl::StrCat("cannot send ", rows, " x ", cols, " ones of ", v1::Dtype_Name(dtype)));
  } else {
    source.ones_ = static_cast<int64_t>(elements) * static_cast<int64_t>(element);
  }
  return source;
}

MatrixSource MatrixSource::MatrixMarket(absl::string_view text, v1::Dtype dtype) {
  MatrixSource source;
  source.spec_.mutable_matrix_market()->set_dtype(dtype);
  source.bytes_ = {AsBytes(absl::MakeConstSpan(text.data(), text.size()))};
  return source;
}

MatrixSource MatrixSource::MatrixMarketFile(std::string path, v1::Dtype dtype) {
  MatrixSource source;
  source.spec_.mutable_matrix_market()->set_dtype(dtype);
  source.path_ = std::move(path);
  return source;
}

bool MatrixSource::repeatable() const {
  struct stat info;
  // A missing file counts as repeatable; Open() reports it.
  return path_.empty() || stat(path_.c_str(), &info) != 0 || S_ISREG(info.st_mode);
}

absl::StatusOr<std::unique_ptr<ChunkReader>> MatrixSource::Open() const {
  if (!status_.ok()) return status_;
  if (batch_ != nullptr) return batch_->Open(spec_.has_batch_rhs());
  if (!path_.empty()) return FileReader::Open(path_);
  if (ones_ >= 0) return std::make_unique<OnesReader>(ones_, spec_.dense().dtype());
  if (vectors_.count > 0) return std::make_unique<StridedReader>(vectors_);
  return std::make_unique<MemoryReader>(bytes_);
}

}  // namespace crout::client
