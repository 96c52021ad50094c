// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/entry_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/scalar.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

MatrixMarketHeader HeaderOf(const EntryFormat& format) {
  MatrixMarketHeader header;
  header.field = IsComplex(format.dtype) ? MatrixMarketHeader::Field::kComplex
                                         : MatrixMarketHeader::Field::kReal;
  header.rows = format.rows;
  header.columns = format.columns;
  header.entries = format.entries;
  return header;
}

}  // namespace

EntryReader::EntryReader(const EntryFormat& format, bool build_value_map,
                         std::shared_ptr<MemoryGrant> grant)
    : format_(format),
      header_(HeaderOf(format)),
      build_value_map_(build_value_map),
      grant_(std::move(grant)),
      taken_(grant_.get()),
      entries_(format.dtype, format.compressed_rows, format.rows, format.entries) {
  SkipEmptySections();
}

int64_t EntryReader::ItemsOf(Section section) const {
  if (section == Section::kRows && format_.compressed_rows) return format_.rows + 1;
  return section == Section::kEnd ? 0 : format_.entries;
}

int64_t EntryReader::ItemsReceived(Section section) const {
  switch (section) {
    case Section::kRows:
      return entries_.row.size();
    case Section::kColumns:
      return entries_.column.size();
    case Section::kValues:
      return std::visit([](const auto& values) { return values.size(); }, entries_.value);
    case Section::kEnd:
      break;
  }
  return 0;
}

size_t EntryReader::ItemBytes(Section section) const {
  return section == Section::kValues ? SizeOf(format_.dtype) : format_.index_bytes;
}

void EntryReader::SkipEmptySections() {
  while (section_ != Section::kEnd && ItemsReceived(section_) == ItemsOf(section_)) {
    section_ = static_cast<Section>(static_cast<int>(section_) + 1);
  }
}

size_t EntryReader::AppendBytes(size_t bytes) const {
  constexpr size_t kFixed = 4096;
  // The bytes can belong to any unfinished section, or to several, and can complete a partial item.
  const auto items = [&](Section section) {
    return section < section_ ? 0 : static_cast<int64_t>(bytes / ItemBytes(section) + 1);
  };
  const size_t most =
      entries_.row.MaxBytes(items(Section::kRows)) +
      entries_.column.MaxBytes(items(Section::kColumns)) +
      std::visit([&](const auto& list) { return list.MaxBytes(items(Section::kValues)); },
                 entries_.value);
  return most - entries_.bytes() + kFixed;
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
          absl::StrCat("more bytes than the ", format_.bytes(), " that the header declares"));
    }
    const size_t size = ItemBytes(section_);
    if (partial_.empty() && bytes.size() >= size) {
      const int64_t left = ItemsOf(section_) - ItemsReceived(section_);
      const int64_t count = std::min(left, static_cast<int64_t>(bytes.size() / size));
      CROUT_RETURN_IF_ERROR(TakeItems(bytes.data(), count));
      bytes = bytes.subspan(count * size);
      continue;
    }
    const size_t count = std::min(size - partial_.size(), bytes.size());
    partial_.append(bytes.data(), count);
    bytes = bytes.subspan(count);
    if (partial_.size() < size) break;
    CROUT_RETURN_IF_ERROR(TakeItems(partial_.data(), 1));
    partial_.clear();
  }
  reserved_ = 0;
  taken_.Keep(entries_.bytes());
  return absl::OkStatus();
}

absl::Status EntryReader::TakeItems(const char* bytes, int64_t count) {
  const Section section = section_;
  absl::Status status;
  if (section == Section::kValues) {
    status = std::visit([&](auto& list) { return TakeValues(bytes, count, list); }, entries_.value);
  } else {
    const auto take = [&]<class Index>(Index) {
      return section == Section::kRows && format_.compressed_rows
                 ? TakeOffsets<Index>(bytes, count)
                 : TakeIndices<Index>(bytes, count, section == Section::kRows);
    };
    status = format_.index_bytes == 4 ? take(int32_t{}) : take(int64_t{});
  }
  SkipEmptySections();
  return status;
}

template <class Index>
absl::Status EntryReader::TakeIndices(const char* bytes, int64_t count, bool are_rows) {
  PieceList<int32_t>& to = are_rows ? entries_.row : entries_.column;
  const int64_t end = are_rows ? format_.rows : format_.columns;
  for (int64_t done = 0; done < count;) {
    const std::span<int32_t> unused = to.Unused(count - done);
    for (int32_t& item : unused) {
      Index index;
      std::memcpy(&index, bytes + done * sizeof(index), sizeof(index));
      if (index < 0 || index >= end) {
        return absl::InvalidArgumentError(absl::StrCat(
            "entry ", to.size() + (&item - unused.data()), " has ", are_rows ? "row " : "column ",
            index, "; ", are_rows ? "rows" : "columns", " are 0-based and below ", end));
      }
      item = static_cast<int32_t>(index);
      ++done;
    }
    to.Keep(std::ssize(unused));
  }
  return absl::OkStatus();
}

template <class Index>
absl::Status EntryReader::TakeOffsets(const char* bytes, int64_t count) {
  for (int64_t done = 0; done < count;) {
    const std::span<int32_t> unused = entries_.row.Unused(count - done);
    for (int32_t& item : unused) {
      Index offset;
      std::memcpy(&offset, bytes + done * sizeof(offset), sizeof(offset));
      const int64_t row = entries_.row.size() + (&item - unused.data());
      const int64_t most = row == 0 ? 0 : format_.entries;
      const bool last = row == format_.rows;
      if (offset < last_offset_ || offset > most || (last && offset != format_.entries)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "offset ", row, " (0-based) is ", offset,
            "; offsets must start at 0, never decrease and end at the number of entries, ",
            format_.entries));
      }
      last_offset_ = offset;
      item = static_cast<int32_t>(offset);
      ++done;
    }
    entries_.row.Keep(std::ssize(unused));
  }
  return absl::OkStatus();
}

template <class T>
absl::Status EntryReader::TakeValues(const char* bytes, int64_t count, PieceList<T>& to) {
  for (int64_t done = 0; done < count;) {
    const std::span<T> unused = to.Unused(count - done);
    std::memcpy(unused.data(), bytes + done * sizeof(T), unused.size_bytes());
    for (const T& value : unused) {
      if (IsFinite(value)) continue;
      const int64_t entry = to.size() + (&value - unused.data());
      return absl::InvalidArgumentError(absl::StrCat(
          "the value of entry ", entry, ", in row ", entries_.RowOf(entry), " and column ",
          entries_.column[entry], " (all 0-based), is not finite. Send finite values only"));
    }
    to.Keep(std::ssize(unused));
    done += std::ssize(unused);
  }
  return absl::OkStatus();
}

absl::Status EntryReader::Finish(StopRequested stop) {
  if (section_ != Section::kEnd) {
    return absl::InvalidArgumentError(
        absl::StrCat("fewer bytes than the ", format_.bytes(), " that the header declares"));
  }
  const auto claim = [this](size_t bytes) -> absl::Status {
    if (grant_ != nullptr) CROUT_RETURN_IF_ERROR(grant_->Take(bytes));
    taken_.Add(bytes);
    return absl::OkStatus();
  };
  const bool map = build_value_map_ && header_.entries <= ValueMapShape::kMaxLines;
  CROUT_RETURN_IF_ERROR(claim(AssembledBytes(header_)));
  if (map) CROUT_RETURN_IF_ERROR(claim(ValueMapBytes(header_)));
  CROUT_ASSIGN_OR_RETURN(
      sparse_, AssembleSparse(header_, std::move(entries_), claim, stop, map ? &map_ : nullptr));
  entries_ = EntryPieces(format_.dtype, false, 0, 0);
  taken_.Keep(ResultBytes(sparse_, map_));
  return absl::OkStatus();
}

SparseMatrix EntryReader::TakeSparse() {
  taken_.Forget(ResultBytes(sparse_, map_));
  return std::exchange(sparse_, SparseMatrix());
}

}  // namespace crout
