// SPDX-License-Identifier: Apache-2.0

// Bytes that may be used, and who holds them.
#ifndef CROUT_SERVER_ENGINE_ADMISSION_MEMORY_BUDGET_H_
#define CROUT_SERVER_ENGINE_ADMISSION_MEMORY_BUDGET_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"

namespace crout {

class MemoryBudget;

// Move-only share of a budget, given back on destruction. Not thread-safe.
class Reservation {
 public:
  Reservation() = default;
  ~Reservation() { Release(); }
  Reservation(Reservation&& other) noexcept
      : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept;

  size_t bytes() const { return bytes_; }
  // Gives back all but `bytes`; no effect if less is held.
  void Shrink(size_t bytes);
  // Takes over `other`, which is of the same budget.
  void Absorb(Reservation other);
  // Moves `bytes` (at most what is held) into a reservation of their own.
  Reservation Split(size_t bytes);
  void Release() { Shrink(0); }

 private:
  friend class MemoryBudget;
  Reservation(MemoryBudget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}

  MemoryBudget* budget_ = nullptr;
  size_t bytes_ = 0;
};

// Thread-safe. Outlives its reservations.
class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;  // Reservations point to it.
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // `trim` is told how much of the budget is free after each reservation: memory that is kept for
  // later, charged to nobody, has to fit into that. Called by the reserving thread, without a lock;
  // set before the first.
  void SetTrim(std::function<void(size_t free)> trim) { trim_ = std::move(trim); }

  // All of `bytes` or nothing; never waits.
  std::optional<Reservation> TryReserve(size_t bytes);

  size_t limit() const { return limit_; }
  size_t reserved() const;

 private:
  friend class Reservation;
  bool Take(size_t bytes);
  void Give(size_t bytes);

  const size_t limit_;
  std::function<void(size_t)> trim_;  // constant once in use
  mutable Mutex mutex_;
  size_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_ADMISSION_MEMORY_BUDGET_H_
