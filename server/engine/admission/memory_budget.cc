// SPDX-License-Identifier: Apache-2.0

#include "server/engine/admission/memory_budget.h"

#include <algorithm>

namespace crout {

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    budget_ = other.budget_;
    owner_ = std::move(other.owner_);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Reservation::Shrink(size_t bytes) {
  if (bytes >= bytes_) return;
  budget_->Subtract(bytes_ - bytes);
  if (owner_ != nullptr) owner_->Subtract(bytes_ - bytes);
  bytes_ = bytes;
}

Reservation Reservation::Split(size_t bytes) {
  bytes = std::min(bytes, bytes_);
  bytes_ -= bytes;
  return {budget_, owner_, bytes};
}

void Reservation::SetOwner(std::shared_ptr<ReservationOwner> owner) noexcept {
  if (owner != nullptr) owner->Add(bytes_);
  if (owner_ != nullptr) owner_->Subtract(bytes_);
  owner_ = std::move(owner);
}

void Reservation::Absorb(Reservation other) {
  if (bytes_ == 0) {
    *this = std::move(other);
    return;
  }
  const size_t bytes = std::exchange(other.bytes_, 0);
  if (owner_ != other.owner_) {
    if (owner_ != nullptr) owner_->Add(bytes);
    if (other.owner_ != nullptr) other.owner_->Subtract(bytes);
  }
  bytes_ += bytes;
}

std::optional<Reservation> MemoryBudget::TryReserve(size_t bytes,
                                                    std::shared_ptr<ReservationOwner> owner) {
  // The owner counts the bytes for at least as long as the budget, so that the bytes of all owners
  // never seem fewer than they are.
  if (owner != nullptr && !owner->TryAdd(bytes)) return std::nullopt;
  if (!TryAdd(bytes)) {
    if (owner != nullptr) owner->Subtract(bytes);
    return std::nullopt;
  }
  return Reservation(this, std::move(owner), bytes);
}

bool MemoryBudget::TryAdd(size_t bytes) {
  size_t reserved = reserved_;
  do {
    // The difference cannot wrap, because reserved <= limit_. The sum reserved + bytes could.
    if (bytes > limit_ - reserved) return false;
  } while (!reserved_.compare_exchange_weak(reserved, reserved + bytes));
  if (trim_) trim_(limit_ - reserved - bytes);
  return true;
}

void MemoryBudget::Subtract(size_t bytes) { reserved_ -= bytes; }

}  // namespace crout
