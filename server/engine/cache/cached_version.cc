// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/cached_version.h"

#include <utility>

namespace crout {

std::shared_ptr<const IterationRecord> ExtractRecord(FactorSummary& summary,
                                                     Reservation reservation,
                                                     std::shared_ptr<ReservationOwner> owner) {
  if (!summary.iterations) return nullptr;
  IterationRecord record;
  record.sweeps = std::exchange(summary.iterations->sweeps, {});
  record.pivots = std::exchange(summary.iterations->pivots, {});
  record.bad_elements = std::exchange(summary.iterations->bad_elements, {});
  reservation.Shrink(
      (record.sweeps.capacity() + record.pivots.capacity() + record.bad_elements.capacity()) *
      sizeof(int64_t));
  reservation.SetOwner(std::move(owner));
  record.reservation = std::move(reservation);
  return std::make_shared<const IterationRecord>(std::move(record));
}

size_t BytesBesideFile(const FactorSummary& summary) {
  return CachedVersion::kEntryBytes + (summary.sparse ? summary.sparse->analysis->bytes() : 0);
}

}  // namespace crout
