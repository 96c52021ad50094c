// SPDX-License-Identifier: Apache-2.0

// A list that grows without moving its elements and can be freed piece by piece while it is read.
#ifndef CROUT_KERNELS_IO_PIECE_LIST_H_
#define CROUT_KERNELS_IO_PIECE_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace crout {

// List of numbers of type T. A new piece has an eighth of the list's size, within limits, so there
// are few pieces and little unused space in the last one.
template <class T>
class PieceList {
  struct Piece {
    std::unique_ptr<T[]> items;
    int64_t used = 0;
    int64_t capacity = 0;
  };

 public:
  // Holds at most `most` items.
  explicit PieceList(int64_t most = 0) : most_(most) {}

  int64_t size() const { return size_; }
  // Bytes held, and an upper bound on them with `more` additional items.
  size_t bytes() const {
    return static_cast<size_t>(capacity_) * sizeof(T) + pieces_.capacity() * sizeof(Piece);
  }
  size_t MaxBytes(int64_t more) const {
    const int64_t size = std::min(most_, size_ + more);
    const int64_t capacity = std::min(most_, size + std::clamp(size / 8, kLeast, kLargest));
    // Between kLeast and kLargest, pieces grow by an eighth each.
    const int64_t pieces = std::min(capacity / kLeast + 1, 96 + size / kLargest);
    // A growing vector has capacity for twice the pieces, and keeps the old ones meanwhile.
    return static_cast<size_t>(capacity) * sizeof(T) + 3 * pieces * sizeof(Piece);
  }

  // Returns space for the next items: at least one, at most `count` (> 0). Keep() then sets how
  // many of them are used.
  std::span<T> Unused(int64_t count) {
    if (pieces_.empty() || pieces_.back().used == pieces_.back().capacity) AddPiece();
    Piece& last = pieces_.back();
    return {last.items.get() + last.used,
            static_cast<size_t>(std::min(count, last.capacity - last.used))};
  }
  void Keep(int64_t count) {
    pieces_.back().used += count;
    size_ += count;
  }

  // Item number `index`, from 0.
  T operator[](int64_t index) const {
    size_t p = 0;
    while (index >= pieces_[p].used) index -= pieces_[p++].used;
    return pieces_[p].items[index];
  }

  // Reads from the first item on. If constructed by move, takes the items out of the list and frees
  // pieces as it goes.
  class Reader {
   public:
    explicit Reader(const PieceList& list) : pieces_(&list.pieces_) {}
    explicit Reader(PieceList&& list) : taken_(std::exchange(list.pieces_, {})), pieces_(&taken_) {
      list = PieceList(list.most_);
    }
    Reader(const Reader&) = delete;  // May refer to itself.
    Reader& operator=(const Reader&) = delete;

    // There must be a next item.
    T Next() {
      if (at_ == (*pieces_)[piece_].used) {
        if (pieces_ == &taken_) taken_[piece_].items.reset();
        ++piece_;
        at_ = 0;
      }
      return (*pieces_)[piece_].items[at_++];
    }

   private:
    std::vector<Piece> taken_;
    const std::vector<Piece>* pieces_;
    size_t piece_ = 0;
    int64_t at_ = 0;
  };

 private:
  static constexpr int64_t kLeast = 1024;
  static constexpr int64_t kLargest = int64_t{1} << 23;

  void AddPiece() {
    const int64_t wanted = std::clamp(size_ / 8, kLeast, kLargest);
    const int64_t capacity = std::min(wanted, most_ - size_);
    pieces_.push_back({std::make_unique_for_overwrite<T[]>(capacity), 0, capacity});
    capacity_ += capacity;
  }

  int64_t most_;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_IO_PIECE_LIST_H_
