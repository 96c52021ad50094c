#include "server/rpc/get_factors_call.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/numerics/permutation.h"
#include "kernels/util/checked_math.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/stopwatch.h"
#include "server/rpc/acquire.h"
#include "server/rpc/data_stream.h"
#include "server/rpc/decode.h"
#include "server/rpc/encode.h"
#include "server/rpc/names.h"
#include "server/rpc/solve_step.h"
#include "server/rpc/status.h"
#include "server/rpc/wire.h"

namespace crout {
namespace {

// Host bytes of the reply with a factor: L and U, pivots and scales, and the header that is made of
// them, once as a message and once on its way.
absl::StatusOr<size_t> ReplyBytes(const FactorSummary& factor) {
  constexpr int64_t kPerRow = 16;  // of 8 bytes
  CROUT_ASSIGN_OR_RETURN(const size_t lu, MatrixBytes(factor.n, factor.n, factor.factor_dtype));
  CROUT_ASSIGN_OR_RETURN(const size_t rest, MatrixBytes(factor.n, kPerRow, DType::kFloat64));
  constexpr size_t kSmallBuffers = 2;  // pivots and scales, which may be less than a block each
  return BlockBytes(lu) + BlockBytes(rest) + kSmallBuffers * BlockBytes(1);
}

}  // namespace

void GetFactorsCall::Begin(const grpc::ByteBuffer& request) {
  DoWork([&] {
    absl::Status status = Enter();
    if (!status.ok()) return Refuse(std::move(status), request.Length());
    status = Start(request);
    if (!status.ok()) return Abort(status);
    admitting_->Schedule([self = shared_from_this(), this] { DoWork([this] { Admit(); }); });
  });
}

void GetFactorsCall::Admit() {
  absl::StatusOr<std::optional<FactorParts>> copy = CopyFromHost();
  MutexLock lock(&mutex_);
  if (!wanted()) return;
  if (!copy.ok()) return End(copy.status());
  if (*copy) {
    StartReply({}, *pin_->slot().device, pin_->summary().n);
    return Reply(**std::move(copy));
  }
  Submit(*pin_->slot().scheduler, 0, [this](ExecutionContext& context) { RunJob(context); });
}

absl::Status GetFactorsCall::Start(const grpc::ByteBuffer& request) {
  CROUT_RETURN_IF_ERROR(TakeRequest(request, &request_));
  CROUT_ASSIGN_OR_RETURN(const Handle handle, DecodeHandle(request_.handle()));
  {
    MutexLock lock(&mutex_);
    observed_.Concerns(request_.handle());
  }
  CROUT_ASSIGN_OR_RETURN(FactorCache::Pin pin, AcquireDense(core_, tenant_, handle));
  if (!pin.summary().has_factors()) {
    return WithReason(absl::FailedPreconditionError(
                          absl::StrCat("there are no factors to download: the matrix is singular, ",
                                       WhySingular(pin.summary()))),
                      kReasonSingular);
  }
  MutexLock lock(&mutex_);
  MoveTo(CallPhase::kAdmission);
  pin_.emplace(std::move(pin));
  ReleaseOn(pin_->slot());
  // Whoever ends the call from now on takes the pin away.
  admitting_ = pin_->slot().admitting.get();
  CROUT_ASSIGN_OR_RETURN(info_, core_.cache.Describe(tenant_, handle));
  // A Refactorize may have come between: the header describes what is sent.
  info_.summary = pin_->summary();
  info_.version = pin_->version();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<FactorParts>> GetFactorsCall::CopyFromHost() {
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, ReplyBytes(pin_->summary()));
  CROUT_ASSIGN_OR_RETURN(JobMemory memory, Reserve(core_, pin_->slot(), {.host = bytes}));
  reply_ = std::move(memory.host);
  return pin_->CopyFromHost(core_.host_memory);
}

absl::StatusOr<FactorParts> GetFactorsCall::CopyFromDevice(ExecutionContext& context) {
  bool promoted = false;  // It was on its device, and the pin keeps it there.
  CROUT_ASSIGN_OR_RETURN(const Factorization* factor, pin_->OnDevice(context, {}, &promoted));
  return CopyForDownload(context, factor->parts, core_.host_memory);
}

v1::GetFactorsHeader GetFactorsCall::Header(const FactorParts& parts) const {
  const FactorSummary& summary = pin_->summary();
  v1::GetFactorsHeader header;
  *header.mutable_factor() = Encode(info_);
  const auto* ipiv = parts[kIpivPart].as<int64_t>();
  const std::vector<int64_t> permutation = PermutationOf(ipiv, summary.n);
  header.mutable_permutation()->Add(permutation.begin(), permutation.end());
  if (request_.include_ipiv()) header.mutable_ipiv()->Add(ipiv, ipiv + summary.n);
  const auto* scales = parts[kScalesPart].as<double>();
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
  Stopwatch watch;
  absl::StatusOr<FactorParts> copy = CopyFromDevice(context);
  timings.device_to_host = watch.Lap();
  MutexLock lock(&mutex_);
  StartReply(timings, context.device(), pin_->summary().n);
  if (!wanted()) return;
  if (!copy.ok()) return End(copy.status());
  Reply(*std::move(copy));
}

void GetFactorsCall::Reply(FactorParts copy) {
  v1::GetFactorsResponse head;
  *head.mutable_header() = Header(copy);
  SendData(head,
           std::make_shared<const ReplyData>(ReplyData{std::move(reply_), copy.Take(kLuPart)}),
           [](v1::GetFactorsResponse&) {});
  End(absl::OkStatus());
}

void GetFactorsCall::ReleaseResources() {
  pin_.reset();
  reply_.Release();
}

}  // namespace crout
