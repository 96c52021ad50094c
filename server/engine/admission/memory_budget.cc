// SPDX-License-Identifier: Apache-2.0

#include "server/engine/admission/memory_budget.h"

#include <algorithm>

namespace crout {

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    budget_ = other.budget_;
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Reservation::Shrink(size_t bytes) {
  if (bytes >= bytes_) return;
  budget_->Subtract(bytes_ - bytes);
  bytes_ = bytes;
}

Reservation Reservation::Split(size_t bytes) {
  bytes = std::min(bytes, bytes_);
  bytes_ -= bytes;
  return Reservation(budget_, bytes);
}

void Reservation::Absorb(Reservation other) {
  if (other.budget_ == nullptr) return;
  budget_ = other.budget_;
  bytes_ += std::exchange(other.bytes_, 0);
}

std::optional<Reservation> MemoryBudget::TryReserve(size_t bytes) {
  if (!TryAdd(bytes)) return std::nullopt;
  return Reservation(this, bytes);
}

size_t MemoryBudget::reserved() const {
  MutexLock lock(&mutex_);
  return reserved_;
}

bool MemoryBudget::TryAdd(size_t bytes) {
  size_t free = 0;
  {
    MutexLock lock(&mutex_);
    // The difference cannot wrap, because reserved_ <= limit_. The sum reserved_ + bytes could.
    if (bytes > limit_ - reserved_) return false;
    reserved_ += bytes;
    free = limit_ - reserved_;
  }
  if (trim_) trim_(free);
  return true;
}

void MemoryBudget::Subtract(size_t bytes) {
  MutexLock lock(&mutex_);
  reserved_ -= bytes;
}

}  // namespace crout
