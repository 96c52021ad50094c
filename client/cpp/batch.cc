// SPDX-License-Identifier: Apache-2.0

#include "crout/batch.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/batch_layout.h"
#include "client/cpp/payload.h"

namespace crout {
inline namespace api {

void BatchSource::AddItem(Dtype dtype, const void* values, int64_t rows, int64_t cols,
                          std::optional<int64_t> stride) {
  if (items_.empty()) dtype_ = dtype;
  mixed_ |= dtype != dtype_;
  items_.push_back(
      {static_cast<const std::byte*>(values), rows, cols, stride.value_or(rows), size()});
}

void BatchSource::Add(const double* values, int64_t rows, int64_t cols,
                      std::optional<int64_t> stride) {
  AddItem(Dtype::kFloat64, values, rows, cols, stride);
}
void BatchSource::Add(const float* values, int64_t rows, int64_t cols,
                      std::optional<int64_t> stride) {
  AddItem(Dtype::kFloat32, values, rows, cols, stride);
}
void BatchSource::Add(const std::complex<double>* values, int64_t rows, int64_t cols,
                      std::optional<int64_t> stride) {
  AddItem(Dtype::kComplex128, values, rows, cols, stride);
}
void BatchSource::Add(const std::complex<float>* values, int64_t rows, int64_t cols,
                      std::optional<int64_t> stride) {
  AddItem(Dtype::kComplex64, values, rows, cols, stride);
}

absl::Status BatchMatrices::BeginBatch(int64_t count) {
  announced_ = count;
  places_.clear();
  bytes_.clear();
  return absl::OkStatus();
}

absl::Status BatchMatrices::Begin(const DenseSpec& spec) {
  // Without BeginBatch() a matrix that is sent again replaces the first.
  if (announced_ == 0) {
    places_.clear();
    bytes_.clear();
  }
  dtype_ = spec.dtype;
  places_.push_back({spec.rows, spec.cols, bytes_.size()});
  return absl::OkStatus();
}

absl::Status BatchMatrices::Append(absl::Span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return absl::OkStatus();
}

namespace internal {

// Copies pairs of numbers, then columns, each matrix padded with zeros up to the start of the next.
class BatchPayload::Reader : public ChunkReader {
 public:
  Reader(const BatchSource& source, std::vector<size_t> order, std::vector<int64_t> pairs,
         int64_t size)
      : source_(source),
        element_(static_cast<int64_t>(ElementSize(source.dtype_))),
        order_(std::move(order)),
        pairs_(std::move(pairs)),
        size_(size) {}

  int64_t size() const override { return size_; }

  absl::StatusOr<grpc::Slice> Next(size_t limit, BorrowCount*,
                                   absl::FunctionRef<absl::Status()>) override {
    const int64_t wanted = std::min<int64_t>(static_cast<int64_t>(limit), size_ - read_);
    grpc::Slice chunk(static_cast<size_t>(wanted));
    auto* to = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(chunk.begin()));
    for (int64_t left = wanted; left > 0;) {
      while (at_ == piece_.size()) Advance();
      const auto count = std::min(static_cast<size_t>(left), piece_.size() - at_);
      std::memcpy(to, piece_.data() + at_, count);
      to += count;
      at_ += count;
      left -= static_cast<int64_t>(count);
    }
    read_ += wanted;
    return chunk;
  }

 private:
  // Moves to the next piece, which may be empty.
  void Advance() {
    static constexpr std::byte kZeros[kBatchAlignment] = {};
    at_ = 0;
    if (!begun_) {
      begun_ = true;
      piece_ = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(pairs_.data()),
                                   pairs_.size() * sizeof(int64_t));
      return;
    }
    const BatchSource::Item& item = source_.items_[order_[item_]];
    const int64_t column = item.rows * element_;
    if (column > 0 && column_ < item.cols) {
      piece_ = {item.values + column_ * item.stride * element_, static_cast<size_t>(column)};
      ++column_;
      return;
    }
    const int64_t bytes = column * item.cols;
    piece_ = {kZeros, static_cast<size_t>(AlignBatch(bytes) - bytes)};
    column_ = 0;
    ++item_;
  }

  const BatchSource& source_;
  const int64_t element_;
  const std::vector<size_t> order_;
  const std::vector<int64_t> pairs_;
  const int64_t size_;
  int64_t read_ = 0;
  bool begun_ = false;
  size_t item_ = 0;     // index in order_ of the matrix whose column comes next
  int64_t column_ = 0;  // next column of that matrix
  absl::Span<const std::byte> piece_;
  size_t at_ = 0;  // position in the piece
};

absl::StatusOr<v1::BatchSpec> BatchPayload::Batch() const {
  const int64_t element = Element();
  if (element == 0)
    return absl::InvalidArgumentError("the batch has no element type: give each matrix a dtype");
  if (source_.mixed_)
    return absl::InvalidArgumentError(
        "the batch has matrices of two element types: convert them to one, or send two batches");
  v1::BatchSpec spec;
  spec.set_dtype(static_cast<v1::Dtype>(source_.dtype_));
  spec.set_members(source_.size());
  // 128 bits hold the sums of all sizes that fit in memory.
  __int128 rows = 0, cols = 0, begin = 0, end = 0;
  for (size_t k = 0; k < source_.items_.size(); ++k) {
    const BatchSource::Item& item = source_.items_[k];
    const bool empty = item.rows == 0 || item.cols == 0;
    constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();
    if (item.rows < 0 || item.cols < 0 || item.rows > kMaxExtent || item.cols > kMaxExtent ||
        (!empty && (item.values == nullptr || item.stride < item.rows))) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot send matrix ", k, ", which is ", item.rows, " x ", item.cols,
                       " with a stride of ", item.stride,
                       !empty && item.values == nullptr ? " from a null pointer" : ""));
    }
    spec.set_max_rows(std::max(spec.max_rows(), item.rows));
    spec.set_max_cols(std::max(spec.max_cols(), item.cols));
    rows += item.rows;
    cols += item.cols;
    const __int128 bytes = static_cast<__int128>(item.rows) * item.cols * element;
    end = begin + bytes;
    begin = end + (kBatchAlignment - static_cast<int64_t>(end % kBatchAlignment)) % kBatchAlignment;
  }
  constexpr auto kMaxBytes = std::numeric_limits<int64_t>::max() / 2;
  if (rows > kMaxBytes || cols > kMaxBytes || end > kMaxBytes) {
    return absl::InvalidArgumentError(
        "the batch has more than 2^63 - 1 bytes: send fewer matrices");
  }
  spec.set_total_rows(static_cast<int64_t>(rows));
  spec.set_total_cols(static_cast<int64_t>(cols));
  spec.set_value_bytes(static_cast<int64_t>(end));
  return spec;
}

absl::StatusOr<std::vector<size_t>> BatchPayload::Order() const {
  std::vector<size_t> order(source_.items_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    return source_.items_[a].member < source_.items_[b].member;
  });
  for (size_t k = 1; k < order.size(); ++k) {
    const int64_t member = source_.items_[order[k]].member;
    if (source_.items_[order[k - 1]].member != member) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("two right-hand sides for member ", member,
                     ": send them as columns of one right-hand side"));
  }
  return order;
}

absl::StatusOr<v1::BatchRhsSpec> BatchPayload::BatchRhs() const {
  if (absl::Status status = Batch().status(); !status.ok()) return status;
  const auto order = Order();
  if (!order.ok()) return order.status();
  v1::BatchRhsSpec spec;
  spec.set_dtype(static_cast<v1::Dtype>(source_.dtype_));
  spec.set_systems(source_.size());
  spec.set_value_bytes(ValueBytes(*order));
  return spec;
}

std::unique_ptr<ChunkReader> BatchPayload::Open(bool sides) const {
  const auto& items = source_.items_;
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (sides) order = *Order();
  std::vector<int64_t> pairs;
  pairs.reserve(2 * items.size());
  for (const size_t k : order) {
    pairs.push_back(sides ? items[k].member : items[k].rows);
    pairs.push_back(items[k].cols);
  }
  const int64_t bytes = ValueBytes(order) + static_cast<int64_t>(pairs.size() * sizeof(int64_t));
  return std::make_unique<Reader>(source_, std::move(order), std::move(pairs), bytes);
}

absl::StatusOr<SystemFigures> BatchPayload::Deliver(absl::Span<const std::byte> data,
                                                    MatrixSink* x) const {
  const std::vector<size_t> order = *Order();
  const int64_t systems = source_.size();
  const int64_t end = AlignBatch(ValueBytes(order));
  const auto errors = ArrayAt<double>(data, end, systems);
  const auto info =
      ArrayAt<int32_t>(data, end + systems * static_cast<int64_t>(sizeof(double)), systems);
  SystemFigures figures;
  figures.backward_error.resize(order.size());
  figures.info.resize(order.size());
  std::vector<int64_t> offsets(order.size());
  int64_t offset = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    const BatchSource::Item& item = source_.items_[order[k]];
    offsets[order[k]] = offset;
    figures.backward_error[order[k]] = errors[k];
    figures.info[order[k]] = info[k];
    offset = AlignBatch(offset + item.rows * item.cols * Element());
  }
  for (size_t k = 0; k < offsets.size(); ++k) {
    const BatchSource::Item& item = source_.items_[k];
    absl::Status status = x->Begin({.dtype = source_.dtype_, .rows = item.rows, .cols = item.cols});
    if (status.ok()) {
      status = x->Append(data.subspan(static_cast<size_t>(offsets[k]),
                                      static_cast<size_t>(item.rows * item.cols * Element())));
    }
    if (!status.ok()) return status;
  }
  return figures;
}

// The end of the last matrix depends on which one is last.
int64_t BatchPayload::ValueBytes(const std::vector<size_t>& order) const {
  int64_t end = 0;
  for (const size_t k : order) {
    const BatchSource::Item& item = source_.items_[k];
    end = AlignBatch(end) + item.rows * item.cols * Element();
  }
  return end;
}

}  // namespace internal
}  // namespace api
}  // namespace crout
