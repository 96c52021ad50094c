// SPDX-License-Identifier: Apache-2.0

#include "server/engine/upload/upload_grant.h"

#include <algorithm>
#include <utility>

#include "kernels/util/status_macros.h"

namespace crout {

void UploadGrant::Absorb(Reservation more) {
  MutexLock lock(&mutex_);
  reservation_.Absorb(std::move(more));
}

bool UploadGrant::TryTake(size_t bytes) {
  auto more = budget_.TryReserve(bytes, owner_);
  if (!more) return false;
  Absorb(*std::move(more));
  return true;
}

absl::Status UploadGrant::Take(size_t bytes) {
  CROUT_ASSIGN_OR_RETURN(Reservation more, cache_.ReserveOnHost(bytes, tenant_));
  Absorb(std::move(more));
  return absl::OkStatus();
}

void UploadGrant::Give(size_t bytes) {
  MutexLock lock(&mutex_);
  reservation_.Shrink(reservation_.bytes() - std::min(bytes, reservation_.bytes()));
}

void UploadGrant::Release() {
  MutexLock lock(&mutex_);
  reservation_.Release();
}

}  // namespace crout
