// SPDX-License-Identifier: Apache-2.0

#include "server/engine/upload/text_grant.h"

#include <algorithm>
#include <utility>

#include "kernels/util/status_macros.h"

namespace crout {

void TextGrant::Absorb(Reservation more) {
  MutexLock lock(&mutex_);
  reservation_.Absorb(std::move(more));
}

bool TextGrant::TryTake(size_t bytes) {
  auto more = budget_.TryReserve(bytes);
  if (!more) return false;
  Absorb(*std::move(more));
  return true;
}

absl::Status TextGrant::Take(size_t bytes) {
  CROUT_ASSIGN_OR_RETURN(Reservation more, cache_.ReserveOnHost(bytes));
  Absorb(std::move(more));
  return absl::OkStatus();
}

void TextGrant::Give(size_t bytes) {
  MutexLock lock(&mutex_);
  reservation_.Shrink(reservation_.bytes() - std::min(bytes, reservation_.bytes()));
}

void TextGrant::Release() {
  MutexLock lock(&mutex_);
  reservation_.Release();
}

}  // namespace crout
