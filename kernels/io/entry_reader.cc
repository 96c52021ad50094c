#include "kernels/io/entry_reader.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/scalar.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr size_t kBlockEntries = 1024;

MatrixMarketHeader HeaderOf(const EntryFormat& format) {
  MatrixMarketHeader header;
  header.field = IsComplex(format.dtype) ? MatrixMarketHeader::Field::kComplex
                                         : MatrixMarketHeader::Field::kReal;
  header.rows = format.rows;
  header.columns = format.columns;
  header.entries = format.entries;
  return header;
}

// Those of a deque of integers that held `most` of them once: it keeps them in pieces, and its
// pointers to these for good.
size_t DequeBytes(size_t size, size_t most) {
  constexpr size_t kEmpty = 1024;
  return kEmpty + size * sizeof(int32_t) + most * sizeof(int32_t) / 8;
}

// Of a block in the lists of blocks, while these grow.
constexpr size_t kListBytes = 6 * sizeof(std::vector<MatrixEntry>);

}  // namespace

EntryReader::EntryReader(const EntryFormat& format, bool map_lines,
                         std::shared_ptr<MemoryGrant> grant)
    : format_(format),
      header_(HeaderOf(format)),
      map_lines_(map_lines),
      grant_(std::move(grant)),
      taken_(grant_.get()) {
  SkipEmptySections();
}

int64_t EntryReader::ItemsOf(Section section) const {
  if (section == Section::kRows && format_.compressed_rows) return format_.rows + 1;
  return section == Section::kEnd ? 0 : format_.entries;
}

size_t EntryReader::ItemBytes(Section section) const {
  return section == Section::kValues ? SizeOf(format_.dtype) : format_.index_bytes;
}

void EntryReader::SkipEmptySections() {
  while (section_ != Section::kEnd && items_ == ItemsOf(section_)) {
    section_ = static_cast<Section>(static_cast<int>(section_) + 1);
    items_ = 0;
  }
}

size_t EntryReader::AppendBytes(size_t bytes) const {
  // A float32 of 4 bytes becomes an entry of 16, a complex64 of 8 one of 24; all else grows less.
  constexpr size_t kGrowth = sizeof(MatrixEntry) / sizeof(float);
  constexpr size_t kFixed = 4096;
  // Any byte may be the one that begins a block.
  const size_t block = std::min(static_cast<size_t>(format_.entries), kBlockEntries) *
                           (sizeof(MatrixEntry) + sizeof(double)) +
                       kListBytes;
  return kGrowth * bytes + block + kFixed;
}

size_t EntryReader::Held() const {
  const auto most = [this](Section section, const std::deque<int32_t>& items) {
    return section_ <= section ? items.size() : static_cast<size_t>(ItemsOf(section));
  };
  return DequeBytes(rows_.size(), most(Section::kRows, rows_)) +
         DequeBytes(columns_.size(), most(Section::kColumns, columns_)) + block_bytes_;
}

bool EntryReader::TryReserve(size_t bytes) {
  const size_t wanted = AppendBytes(bytes);
  if (wanted <= reserved_) return true;
  if (grant_ != nullptr && !grant_->TryTake(wanted - reserved_)) return false;
  taken_.Add(wanted - reserved_);
  reserved_ = wanted;
  return true;
}

absl::Status EntryReader::Reserve(size_t bytes) {
  const size_t wanted = AppendBytes(bytes);
  if (wanted <= reserved_) return absl::OkStatus();
  if (grant_ != nullptr) CROUT_RETURN_IF_ERROR(grant_->Take(wanted - reserved_));
  taken_.Add(wanted - reserved_);
  reserved_ = wanted;
  return absl::OkStatus();
}

absl::Status EntryReader::Append(std::span<const char> bytes) {
  CROUT_RETURN_IF_ERROR(Reserve(bytes.size()));
  while (!bytes.empty()) {
    if (section_ == Section::kEnd) {
      return absl::InvalidArgumentError(
          absl::StrCat("more bytes than the ", format_.bytes(), " declared"));
    }
    const size_t size = ItemBytes(section_);
    if (partial_.empty() && bytes.size() >= size) {
      CROUT_RETURN_IF_ERROR(TakeItem(bytes.data()));
      bytes = bytes.subspan(size);
      continue;
    }
    const size_t count = std::min(size - partial_.size(), bytes.size());
    partial_.append(bytes.data(), count);
    bytes = bytes.subspan(count);
    if (partial_.size() < size) break;
    CROUT_RETURN_IF_ERROR(TakeItem(partial_.data()));
    partial_.clear();
  }
  reserved_ = 0;
  taken_.Keep(Held());
  return absl::OkStatus();
}

absl::Status EntryReader::TakeItem(const char* bytes) {
  const Section section = section_;
  ++items_;
  SkipEmptySections();
  if (section == Section::kValues) return TakeValue(bytes);
  int64_t index = 0;
  if (format_.index_bytes == 4) {
    int32_t narrow = 0;
    std::memcpy(&narrow, bytes, sizeof(narrow));
    index = narrow;
  } else {
    std::memcpy(&index, bytes, sizeof(index));
  }
  if (section == Section::kRows && format_.compressed_rows) return TakeOffset(index);
  const bool is_row = section == Section::kRows;
  std::deque<int32_t>& to = is_row ? rows_ : columns_;
  const int64_t end = is_row ? format_.rows : format_.columns;
  if (index < 0 || index >= end) {
    return absl::InvalidArgumentError(absl::StrCat("entry ", to.size(), " is in ",
                                                   is_row ? "row " : "column ", index,
                                                   " (all from 0) of ", end));
  }
  to.push_back(static_cast<int32_t>(index));
  return absl::OkStatus();
}

absl::Status EntryReader::TakeOffset(int64_t offset) {
  const auto row = static_cast<int64_t>(rows_.size());
  const int64_t least = row == 0 ? 0 : rows_.back();
  const int64_t most = row == 0 ? 0 : format_.entries;
  const bool last = row == format_.rows;
  if (offset < least || offset > most || (last && offset != format_.entries)) {
    return absl::InvalidArgumentError(absl::StrCat("offset ", row, " (from 0) is ", offset,
                                                   ": offsets go from 0 to the ", format_.entries,
                                                   " entries and never fall"));
  }
  rows_.push_back(static_cast<int32_t>(offset));
  return absl::OkStatus();
}

int32_t EntryReader::NextRow() {
  if (!format_.compressed_rows) {
    const int32_t row = rows_.front();
    rows_.pop_front();
    return row;
  }
  // The first of the offsets is where this row begins.
  while (rows_[1] <= taken_values_) {
    rows_.pop_front();
    ++row_;
  }
  return row_;
}

absl::Status EntryReader::TakeValue(const char* bytes) {
  const bool complex = IsComplex(format_.dtype);
  const std::complex<double> value = DispatchDType(format_.dtype, [&](auto tag) {
    typename decltype(tag)::type read;
    std::memcpy(&read, bytes, sizeof(read));
    return std::complex<double>(read);
  });
  if (!std::isfinite(value.real()) || !std::isfinite(value.imag())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the value of entry ", taken_values_, ", in row ", NextRow(), " and column ",
                     columns_.front(), " (all from 0), is not finite"));
  }
  if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity()) {
    const size_t left = static_cast<size_t>(format_.entries - taken_values_);
    blocks_.emplace_back().reserve(std::min(left, kBlockEntries));
    if (complex) imaginary_.emplace_back().reserve(blocks_.back().capacity());
    block_bytes_ +=
        blocks_.back().capacity() * (sizeof(MatrixEntry) + (complex ? sizeof(double) : 0)) +
        kListBytes;
  }
  blocks_.back().push_back({NextRow(), columns_.front(), value.real()});
  columns_.pop_front();
  if (complex) imaginary_.back().push_back(value.imag());
  ++taken_values_;
  return absl::OkStatus();
}

absl::Status EntryReader::Finish() {
  if (section_ != Section::kEnd) {
    return absl::InvalidArgumentError(
        absl::StrCat("fewer bytes than the ", format_.bytes(), " that the header declares"));
  }
  const auto claim = [this](size_t bytes) -> absl::Status {
    if (grant_ != nullptr) CROUT_RETURN_IF_ERROR(grant_->Take(bytes));
    taken_.Add(bytes);
    return absl::OkStatus();
  };
  std::deque<int32_t>().swap(rows_);
  std::deque<int32_t>().swap(columns_);
  const bool map = map_lines_ && header_.entries <= ValueMapShape::kMostLines;
  const auto peak = static_cast<size_t>(PeakBytes(header_));
  CROUT_RETURN_IF_ERROR(claim(peak - std::min(peak, block_bytes_)));
  if (map) CROUT_RETURN_IF_ERROR(claim(LineMapBytes(header_)));
  CROUT_ASSIGN_OR_RETURN(sparse_, AssembleSparse(header_, std::move(blocks_), std::move(imaginary_),
                                                 claim, map ? &map_ : nullptr));
  block_bytes_ = 0;
  taken_.Keep(ResultBytes(sparse_, map_));
  return absl::OkStatus();
}

SparseMatrix EntryReader::TakeSparse() {
  taken_.Forget(ResultBytes(sparse_, map_));
  return std::exchange(sparse_, SparseMatrix());
}

}  // namespace crout
