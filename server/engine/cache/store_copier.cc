// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/device.h"
#include "kernels/util/status_macros.h"
#include "server/engine/cache/cached_version.h"
#include "server/engine/cache/tier_copier.h"
#include "server/engine/error.h"

namespace crout {
namespace {

// A guess: the cause of a failed read is unknown.
constexpr double kReadRetrySeconds = 1;

absl::Status WriteFailed(const absl::Status& status, const FactorStore& store) {
  return WithRetryAfter(WithReason(absl::UnavailableError(absl::StrCat(
                                       "the factor could not be stored: ", status.message())),
                                   kReasonStoreFailed),
                        store.RetrySeconds());
}

absl::Status ReadFailed(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return status;
  return WithRetryAfter(
      WithReason(absl::UnavailableError(absl::StrCat(
                     "the factor could not be read back: ", status.message(), ". Try again")),
                 kReasonStoreFailed),
      kReadRetrySeconds);
}

}  // namespace

absl::StatusOr<ChargedMemory> StoreCopier::CopyIn(const CachedVersion& from,
                                                  const FactorRecord* record,
                                                  std::string_view tenant, Reserve reserve,
                                                  std::shared_ptr<OverdueWrite>* overdue) {
  ChargedMemory copy;
  if (from.file) return copy;
  if (record == nullptr) return absl::FailedPreconditionError("the entry is not a factor");
  if (!from.resident) CROUT_RETURN_IF_ERROR(CheckHostCopy(from));
  CROUT_ASSIGN_OR_RETURN(
      copy.file, WriteFromHost(*record, tenant, from.factorization.parts, reserve, overdue));
  return copy;
}

absl::StatusOr<UnclaimedFile> StoreCopier::WriteFromHost(const FactorRecord& record,
                                                         std::string_view account,
                                                         const FactorParts& parts, Reserve reserve,
                                                         std::shared_ptr<OverdueWrite>* overdue) {
  if (const absl::Status writable = store_->CheckWritable(account); !writable.ok()) {
    return WriteFailed(writable, *store_);
  }
  CROUT_ASSIGN_OR_RETURN(FactorImage image, FactorImage::Make(record, parts));
  const size_t bytes = store_->Charged(image.bytes());
  store_->AwaitDiscards(account);
  absl::StatusOr<Reservation> reservation = reserve(bytes);
  if (record.durable && !reservation.ok() &&
      ReasonOf(reservation.status()) != kReasonQuotaExceeded) {
    // Without this wait, the call would fail although removals of other tenants free the space.
    store_->AwaitDiscards();
    reservation = reserve(bytes);
  }
  if (!reservation.ok()) {
    if (ReasonOf(reservation.status()) == kReasonQuotaExceeded) return reservation.status();
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat(
            "the factor needs ", bytes, " bytes of the store, which has ", store_->budget().limit(),
            " bytes and no space for it: release factors "
            "that are no longer needed, or raise --max-store-bytes")),
        kReasonStoreFull);
  }
  absl::StatusOr<StoredFile> file =
      store_->Write(record, account, std::move(image), *std::move(reservation), overdue);
  if (!file.ok()) return WriteFailed(file.status(), *store_);
  return UnclaimedFile(*std::move(file));
}

absl::StatusOr<UnclaimedFile> StoreCopier::Write(const FactorRecord& record, DeviceSlot& slot,
                                                 const FactorParts& parts, Reserve reserve,
                                                 std::shared_ptr<OverdueWrite>* overdue) {
  if (slot.on_host()) return WriteFromHost(record, record.tenant, parts, reserve, overdue);
  Reservation reservation;  // outlives the copy
  CROUT_ASSIGN_OR_RETURN(reservation, reserve_on_host_(parts.bytes(), record.tenant));
  FactorParts copy;
  {
    MutexLock lock(&slot.transfer_mutex);
    CROUT_ASSIGN_OR_RETURN(copy, CopyToHost(*slot.transfer_context, parts, *memory_));
  }
  std::shared_ptr<OverdueWrite> of_copy;
  absl::StatusOr<UnclaimedFile> file =
      WriteFromHost(record, record.tenant, copy, reserve, &of_copy);
  if (of_copy != nullptr) of_copy->Keep(reservation, copy);
  return file;
}

absl::StatusOr<FactorParts> StoreCopier::CopyOut(ExecutionContext& context,
                                                 const CachedVersion& from,
                                                 std::string_view tenant) {
  if (context.device().info().kind == DeviceKind::kHost) {
    absl::StatusOr<FactorParts> parts = store_->ReadParts(from.file, context.device().memory());
    if (!parts.ok()) return ReadFailed(parts.status());
    return parts;
  }
  FactorParts parts;
  CROUT_RETURN_IF_ERROR(Read(from, tenant, [&](const FactorParts& read) -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(parts, CopyToDevice(context, read));
    return absl::OkStatus();
  }));
  return parts;
}

absl::Status StoreCopier::Read(const CachedVersion& from, std::string_view tenant, ReadParts read) {
  Reservation reservation;  // outlives the parts
  CROUT_ASSIGN_OR_RETURN(reservation, reserve_on_host_(from.bytes, tenant));
  absl::StatusOr<FactorParts> parts = store_->ReadParts(from.file, *memory_);
  if (!parts.ok()) return ReadFailed(parts.status());
  return read(*parts);
}

}  // namespace crout
