#include "server/rpc/get_factors_call.h"

#include <utility>
#include <vector>

#include "kernels/permutation.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/rpc/data_stream.h"
#include "server/rpc/names.h"
#include "server/rpc/wire.h"

namespace crout {
void GetFactorsCall::Begin(const grpc::ByteBuffer& request) {
  const absl::Status status = Start(request);
  if (!status.ok()) return Abort(status);
  core_.blocking.Schedule([self = shared_from_this(), this] {
    if (!BeginWork()) return;
    absl::Status reserved = Reserve();
    {
      MutexLock lock(&mutex_);
      if (reserved.ok()) {
        Submit(*pin_->slot().scheduler, 0);
      } else {
        End(std::move(reserved));
      }
    }
    EndWork();
  });
}

absl::Status GetFactorsCall::Start(const grpc::ByteBuffer& request) {
  CROUT_RETURN_IF_ERROR(Enter());
  CROUT_RETURN_IF_ERROR(ParseMessage(request, &request_));
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request_.handle()));
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, core_.cache.Acquire(tenant_, handle));
  pin_.emplace(std::move(pin));
  CROUT_ASSIGN_OR_RETURN(info_, core_.cache.Describe(tenant_, handle));
  // A Refactorize may have come between: the header describes what is sent.
  info_.summary = pin_->summary();
  info_.version = pin_->version();
  return absl::OkStatus();
}

absl::Status GetFactorsCall::Reserve() {
  CROUT_ASSIGN_OR_RETURN(promotion_,
                         core_.cache.ReserveOnDevice(pin_->slot(), pin_->promotion_bytes()));
  return absl::OkStatus();
}

absl::StatusOr<FactorCopy> GetFactorsCall::Copy(ExecutionContext& context, CallTimings& timings) {
  Stopwatch watch;
  bool promoted = false;
  CROUT_ASSIGN_OR_RETURN(const Factorization* factor,
                         pin_->OnDevice(context, std::move(promotion_), &promoted));
  timings.host_to_device += watch.Lap();
  FactorCopy copy;
  const FactorStorage& storage = factor->storage;
  CROUT_ASSIGN_OR_RETURN(
      copy.reservation,
      core_.cache.ReserveOnHost(storage.lu.size() + storage.ipiv.size() + storage.scales.size()));
  CROUT_ASSIGN_OR_RETURN(copy.storage, CopyFactorsToHost(context, storage, core_.host_memory));
  timings.device_to_host += watch.Lap();
  return copy;
}

v1::GetFactorsHeader GetFactorsCall::Header(const FactorStorage& storage) const {
  const FactorSummary& summary = pin_->summary();
  v1::GetFactorsHeader header;
  *header.mutable_factor() = Encode(info_);
  const auto* ipiv = storage.ipiv.as<int64_t>();
  const std::vector<int64_t> permutation = PermutationOf(ipiv, summary.n);
  header.mutable_permutation()->Add(permutation.begin(), permutation.end());
  if (request_.include_ipiv()) header.mutable_ipiv()->Add(ipiv, ipiv + summary.n);
  const auto* scales = storage.scales.as<double>();
  if (summary.row_scaled) header.mutable_row_scales()->Add(scales, scales + summary.n);
  if (summary.col_scaled) {
    header.mutable_col_scales()->Add(scales + summary.n, scales + 2 * summary.n);
  }
  *header.mutable_lu() =
      EncodeDense({nullptr, summary.factor_dtype, Layout::kColumnMajor, summary.n, summary.n});
  return header;
}

void GetFactorsCall::RunJob(ExecutionContext& context) {
  CallTimings timings;
  absl::StatusOr<FactorCopy> copy = Copy(context, timings);
  MutexLock lock(&mutex_);
  StartReply(timings);
  observed_.device = context.device().info().name;
  observed_.n = pin_->summary().n;
  if (ended()) return;
  if (!copy.ok()) return End(copy.status());
  v1::GetFactorsResponse head;
  *head.mutable_header() = Header(copy->storage);
  auto data = std::make_shared<const Buffer>(std::move(copy->storage.lu));
  // Charged until the last message was made: then at most a few chunks are still in flight.
  const auto tail = [reservation = std::make_shared<Reservation>(std::move(copy->reservation))](
                        v1::GetFactorsResponse&) {};
  StreamData(head, std::move(data), v1::GetFactorsResponse::kDataFieldNumber,
             core_.limits.reply_chunk_bytes, tail, [this](Message message) {
               mutex_.AssertHeld();
               Send(std::move(message));
             });
  End(absl::OkStatus());
}

void GetFactorsCall::ReleaseResources() {
  pin_.reset();
  promotion_.Release();
}

}  // namespace crout
