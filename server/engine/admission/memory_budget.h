// SPDX-License-Identifier: Apache-2.0

// Memory budgets and reservations.
#ifndef CROUT_SERVER_ENGINE_ADMISSION_MEMORY_BUDGET_H_
#define CROUT_SERVER_ENGINE_ADMISSION_MEMORY_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace crout {

class MemoryBudget;

// Counts the bytes that are reserved for one owner. Thread-safe.
class ReservationOwner {
 public:
  virtual ~ReservationOwner() = default;
  // Counts bytes that are about to be reserved. Returns false, and counts nothing, if the owner may
  // not have them now.
  virtual bool TryAdd(size_t bytes) noexcept = 0;
  // Counts bytes that are already reserved.
  virtual void Add(size_t bytes) noexcept = 0;
  virtual void Subtract(size_t bytes) noexcept = 0;
};

// Bytes reserved from a budget. Returns them on destruction, first to the budget and then to the
// owner, if there is one. Move-only, not thread-safe.
class Reservation {
 public:
  Reservation() = default;
  ~Reservation() { Release(); }
  Reservation(Reservation&& other) noexcept
      : budget_(other.budget_),
        owner_(std::move(other.owner_)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept;

  size_t bytes() const { return bytes_; }
  // Keeps at most `bytes` and returns the rest to the budget.
  void Shrink(size_t bytes);
  // Adds the bytes of `other`, a reservation of the same budget, to this one. They then count for
  // the owner of this reservation; an empty reservation takes over the owner of `other`.
  void Absorb(Reservation other);
  // Counts the bytes for `owner` from now on; null: for no owner.
  void SetOwner(std::shared_ptr<ReservationOwner> owner) noexcept;
  // Moves `bytes`, or all bytes held if these are fewer, into a new reservation.
  Reservation Split(size_t bytes);
  void Release() { Shrink(0); }

 private:
  friend class MemoryBudget;
  Reservation(MemoryBudget* budget, std::shared_ptr<ReservationOwner> owner, size_t bytes)
      : budget_(budget), owner_(std::move(owner)), bytes_(bytes) {}

  MemoryBudget* budget_ = nullptr;
  std::shared_ptr<ReservationOwner> owner_;
  size_t bytes_ = 0;
};

// A limit on reserved bytes. Thread-safe. Outlives its reservations.
class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;  // Reservations point to it.
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Sets a function that is called with the free bytes of the budget after each successful
  // reservation. It must shrink the caches of free memory to this size, because they hold no
  // reservation. It is called on the reserving thread. Call SetTrim before the first
  // reservation.
  void SetTrim(std::function<void(size_t free)> trim) { trim_ = std::move(trim); }

  // Reserves all of `bytes`, or returns nothing. Never waits. They count for `owner`, if it is not
  // null and may have them.
  std::optional<Reservation> TryReserve(size_t bytes,
                                        std::shared_ptr<ReservationOwner> owner = nullptr);

  size_t limit() const { return limit_; }
  size_t reserved() const { return reserved_; }

 private:
  friend class Reservation;
  bool TryAdd(size_t bytes);
  void Subtract(size_t bytes);

  const size_t limit_;
  std::function<void(size_t)> trim_;  // constant once in use
  std::atomic<size_t> reserved_ = 0;  // at most limit_
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_ADMISSION_MEMORY_BUDGET_H_
