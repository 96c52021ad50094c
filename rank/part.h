// SPDX-License-Identifier: Apache-2.0

// The part of a matrix that one rank holds, as contiguous ranges of the group's memory.
#ifndef CROUT_RANK_PART_H_
#define CROUT_RANK_PART_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "crout/rank/v1/rank_service.pb.h"
#include "rank/layout.h"

namespace crout::rank {

// Ranges of the elements of a part, in the order of columns. A rank's blocks have this order too.
class PartRanges {
 public:
  struct Next {
    uint64_t offset;  // from the start of the memory
    size_t bytes;     // 0: no element is left
  };

  // Returns nothing if a field is out of range, or the last element is beyond part.range().
  static std::optional<PartRanges> Of(const v1::Part& part) {
    constexpr int64_t kMost = INT32_MAX;
    const auto within = [](int64_t value, int64_t least, int64_t most) {
      return value >= least && value <= most;
    };
    // An array has one column, and may be longer than a matrix has rows.
    const int64_t most_rows = part.cols() == 1 ? int64_t{1} << 48 : kMost;
    if (!within(part.element_bytes(), 1, 16) || !within(part.rows(), 1, most_rows) ||
        !within(part.cols(), 1, kMost) || !within(part.ld(), part.rows(), most_rows) ||
        !within(part.grid_rows(), 1, kMost) || !within(part.grid_cols(), 1, kMost) ||
        !within(part.grid_row(), 0, part.grid_rows() - 1) ||
        !within(part.grid_col(), 0, part.grid_cols() - 1) || !within(part.block(), 1, kMost)) {
      return std::nullopt;
    }
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(part.ld()), part.cols() - 1, &bytes) ||
        __builtin_add_overflow(bytes, static_cast<uint64_t>(part.rows()), &bytes) ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(part.element_bytes()), &bytes) ||
        bytes > part.range().bytes()) {
      return std::nullopt;
    }
    return PartRanges(part);
  }

  // Bytes of all ranges.
  uint64_t bytes() const { return static_cast<uint64_t>(rows_.Count()) * cols_.Count() * size_; }

  // Returns the next range, cut to `most` bytes.
  Next Take(size_t most) {
    if (cols_.AtEnd() || rows_.Count() == 0 || most == 0) return {0, 0};
    const uint64_t all = static_cast<uint64_t>(rows_.RunLength()) * size_;
    const uint64_t start =
        base_ + (static_cast<uint64_t>(cols_.index()) * ld_ + rows_.index()) * size_;
    const size_t bytes = std::min<uint64_t>(all - taken_, most);
    const Next next = {start + taken_, bytes};
    taken_ += bytes;
    if (taken_ == all) {
      taken_ = 0;
      rows_.Advance(rows_.RunLength());
      if (rows_.AtEnd()) {
        rows_.Restart();
        cols_.Advance(1);
      }
    }
    return next;
  }

 private:
  // The rows or columns of one process, when blocks are dealt out in turn.
  class Lines {
   public:
    Lines(int64_t count, int process, int processes, int64_t block)
        : count_(count), process_(process), processes_(processes), block_(block) {
      Restart();
    }
    int64_t index() const { return index_; }
    bool AtEnd() const { return index_ >= count_; }
    void Restart() { index_ = processes_ == 1 ? 0 : process_ * block_; }
    // Lines up to the end of the block. One process has all lines.
    int64_t RunLength() const {
      if (processes_ == 1) return count_ - index_;
      return std::min(block_ - index_ % block_, count_ - index_);
    }
    void Advance(int64_t lines) {
      index_ += lines;
      if (processes_ > 1 && index_ % block_ == 0) index_ += block_ * (processes_ - 1);
    }
    int64_t Count() const { return Local(count_, process_, processes_, block_); }

   private:
    int64_t count_;
    int64_t process_;
    int64_t processes_;
    int64_t block_;
    int64_t index_ = 0;
  };

  explicit PartRanges(const v1::Part& part)
      : base_(part.range().offset()),
        size_(part.element_bytes()),
        ld_(part.ld()),
        rows_(part.rows(), part.grid_row(), part.grid_rows(), part.block()),
        cols_(part.cols(), part.grid_col(), part.grid_cols(), part.block()) {}

  uint64_t base_;
  uint64_t size_;
  uint64_t ld_;
  Lines rows_;
  Lines cols_;
  uint64_t taken_ = 0;  // bytes of the current run
};

}  // namespace crout::rank

#endif  // CROUT_RANK_PART_H_
