// SPDX-License-Identifier: Apache-2.0

#include "crout/batch.h"

#include <utility>

#include "client/cpp/lease_keeper.h"

namespace crout {

using client::BatchDownload;
using client::BatchSolution;
using client::BatchSource;
using client::CallOptions;
using client::Client;
using client::FactoredBatch;
using client::HeldFactor;

absl::StatusOr<Batch> Batch::Factorize(std::shared_ptr<Client> client, const BatchSource& matrices,
                                       const v1::FactorizeBatchHeader& header,
                                       const CallOptions& call) {
  if (!header.handle().empty()) {
    return absl::InvalidArgumentError("a new batch has no handle yet: use Refactorize");
  }
  if (absl::Status cache = HeldFactor::Check(header.cache()); !cache.ok()) return cache;
  auto made = client->FactorizeBatch(matrices, header, call);
  if (!made.ok()) return made.status();
  auto hold = HeldFactor::Hold(std::move(client), made->factor, header.cache(), call);
  if (!hold.ok()) return hold.status();
  return Batch(*std::move(hold), *std::move(made));
}

absl::StatusOr<Batch> Batch::FactorizeAndSolve(std::shared_ptr<Client> client,
                                               const BatchSource& matrices,
                                               const BatchSource& sides, BatchSolution* solution,
                                               v1::FactorizeAndSolveBatchHeader header,
                                               const CallOptions& call) {
  if (solution == nullptr)
    return absl::InvalidArgumentError("solution is null: pass a place for the solution");
  header.mutable_cache();
  const v1::CacheOptions cache = header.cache();
  FactoredBatch made;
  auto solved = client->FactorizeAndSolveBatch(matrices, sides, std::move(header), &made, call);
  if (!solved.ok()) return solved.status();
  auto hold = HeldFactor::Hold(std::move(client), made.factor, cache, call);
  if (!hold.ok()) return hold.status();
  *solution = *std::move(solved);
  return Batch(*std::move(hold), std::move(made));
}

Batch::Batch(std::shared_ptr<const HeldFactor> hold, FactoredBatch factored)
    : hold_(std::move(hold)), factored_(std::move(factored)) {}

Batch& Batch::operator=(Batch&& other) noexcept {
  Batch taken(std::move(other));
  std::swap(hold_, taken.hold_);
  std::swap(factored_, taken.factored_);
  return *this;
}

Batch::~Batch() {
  if (hold_ == nullptr) return;
  CallOptions call;
  call.timeout = absl::Seconds(5);
  Release(call).IgnoreError();  // If this fails, the lease ends.
}

absl::Status Batch::lease_status() const {
  return hold_ == nullptr ? absl::OkStatus() : hold_->LeaseStatus();
}

absl::Status Batch::Confirm(const CallOptions& call) const {
  return HeldFactor::Confirm(hold_.get(), call);
}

absl::StatusOr<BatchSolution> Batch::Solve(const BatchSource& sides, v1::SolveBatchHeader header,
                                           const CallOptions& call) const {
  if (absl::Status status = Confirm(call); !status.ok()) return status;
  header.set_handle(hold_->handle());
  return hold_->client().SolveBatch(sides, std::move(header), call);
}

absl::Status Batch::Refactorize(const BatchSource& matrices, bool keep_matrix,
                                const CallOptions& call) {
  if (absl::Status status = Confirm(call); !status.ok()) return status;
  v1::FactorizeBatchHeader header;
  header.set_handle(hold_->handle());
  header.set_keep_matrix(keep_matrix);
  auto made = hold_->client().FactorizeBatch(matrices, std::move(header), call);
  if (!made.ok()) return made.status();
  factored_ = *std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<BatchDownload> Batch::Download(int64_t first, int64_t count,
                                              const CallOptions& call) const {
  if (absl::Status status = Confirm(call); !status.ok()) return status;
  v1::GetBatchFactorsRequest request;
  request.set_handle(hold_->handle());
  request.set_first(first);
  request.set_count(count);
  return hold_->client().GetBatchFactors(request, call);
}

absl::StatusOr<v1::Factor> Batch::Describe(const CallOptions& call) const {
  if (absl::Status status = Confirm(call); !status.ok()) return status;
  return hold_->client().Describe(hold_->handle(), call);
}

absl::Status Batch::Release(const CallOptions& call) {
  if (hold_ == nullptr) return Confirm(call);
  const std::shared_ptr<const HeldFactor> hold = std::exchange(hold_, nullptr);
  factored_ = {};
  hold->Drop();
  return hold->client().Release(hold->handle(), call);
}

}  // namespace crout
