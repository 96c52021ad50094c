#include "server/rpc/factorize_call.h"

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/rpc/status.h"
#include "server/scheduling/reason.h"

namespace crout {
namespace {

// FactorizeResponse and RefactorizeResponse: an event each.
template <class Response>
grpc::ByteBuffer ProgressEvent(const v1::Progress& progress) {
  Response response;
  *response.mutable_progress() = progress;
  return Serialize(response);
}

template <class Response>
grpc::ByteBuffer FactorEvent(const v1::Factor& factor) {
  Response response;
  *response.mutable_factor() = factor;
  return Serialize(response);
}

}  // namespace

void FactoringCall::RunJob(ExecutionContext& context) {
  CallTimings timings = ArrivalTimings();
  {
    MutexLock lock(&mutex_);
    if (IsLong()) SendProgress(v1::PHASE_FACTOR, 0, PredictSeconds());
  }
  const int64_t n = factor_->upload().shape().rows;
  absl::StatusOr<NewFactor> factor = factor_->Run(
      context, [&] { return StopFactoring(context, n); }, timings);

  MutexLock lock(&mutex_);
  StartReply(timings);
  observed_.device = context.device().info().name;
  observed_.n = n;
  if (ended()) return;
  if (!factor.ok()) return End(JobStatus(factor.status(), context.device()));
  factor->timings = ReplyTimings();
  FactorSummary summary = factor->factorization.summary;
  absl::StatusOr<FactorInfo> info = Store(*std::move(factor));
  if (!info.ok()) return End(info.status());
  info->summary = std::move(summary);  // The cache keeps no counts by section.
  Reply(*info);
}

void FactoringCall::Reply(const FactorInfo& info) {
  Send([this, factor = crout::Encode(info)] { return Encode(factor); });
  End(absl::OkStatus());
}

absl::StatusOr<std::vector<PayloadStep*>> FactorizeCall::Start(const StreamMessage& first) {
  v1::FactorizeHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(insert_, DecodeCacheOptions(header.cache(), tenant_, core_.limits));
  observed_.request_id = insert_.request_id;
  CROUT_ASSIGN_OR_RETURN(DeviceSlot * slot, core_.devices.Choose(header.options().device()));
  CROUT_ASSIGN_OR_RETURN(factor_,
                         FactorStep::Create(core_, header.matrix(), header.options(), *slot, true));
  if (!insert_.request_id.empty()) {
    CROUT_ASSIGN_OR_RETURN(const std::optional<FactorInfo> living,
                           core_.cache.ClaimRequest(tenant_, insert_.request_id));
    if (living) {
      Reply(*living);
      return std::vector<PayloadStep*>{};
    }
    claim_.emplace(&core_.cache, tenant_, insert_.request_id);
  }
  return std::vector<PayloadStep*>{factor_.get()};
}

absl::StatusOr<FactorInfo> FactorizeCall::Store(NewFactor factor) {
  const FactorInfo info = core_.cache.Insert(std::move(factor), insert_);
  if (claim_) claim_->Complete();
  return info;
}

grpc::ByteBuffer FactorizeCall::Encode(const v1::Progress& progress) {
  return ProgressEvent<v1::FactorizeResponse>(progress);
}

grpc::ByteBuffer FactorizeCall::Encode(const v1::Factor& factor) {
  return FactorEvent<v1::FactorizeResponse>(factor);
}

void FactorizeCall::ReleaseResources() {
  FactoringCall::ReleaseResources();
  claim_.reset();
}

absl::StatusOr<std::vector<PayloadStep*>> RefactorizeCall::Start(const StreamMessage& first) {
  v1::RefactorizeHeader header;
  CROUT_RETURN_IF_ERROR(first.ParseHeader(&header));
  CROUT_ASSIGN_OR_RETURN(handle_, DecodeHandle(header.handle()));
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin old, core_.cache.Acquire(tenant_, handle_));
  old_.emplace(std::move(old));
  const std::string& device = old_->slot().device->info().name;
  if (!header.options().device().empty() && header.options().device() != device) {
    return BadField("header.options.device",
                    absl::StrCat("the handle's factor is on ", device, ": leave this empty"));
  }
  CROUT_ASSIGN_OR_RETURN(
      factor_, FactorStep::Create(core_, header.matrix(), header.options(), old_->slot(), true));
  factor_->RequireOrder(old_->summary().n);
  factor_->StartFrom(&*old_);
  return std::vector<PayloadStep*>{factor_.get()};
}

absl::StatusOr<FactorInfo> RefactorizeCall::Store(NewFactor factor) {
  return core_.cache.Replace(tenant_, handle_, std::move(factor));
}

void RefactorizeCall::ReleaseResources() {
  FactoringCall::ReleaseResources();
  old_.reset();
}

grpc::ByteBuffer RefactorizeCall::Encode(const v1::Progress& progress) {
  return ProgressEvent<v1::RefactorizeResponse>(progress);
}

grpc::ByteBuffer RefactorizeCall::Encode(const v1::Factor& factor) {
  return FactorEvent<v1::RefactorizeResponse>(factor);
}

}  // namespace crout
