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
                                       const v1::FactorizeOptions& options,
                                       const v1::CacheOptions& cache, const CallOptions& call) {
  if (absl::Status valid = HeldFactor::Check(cache); !valid.ok()) return valid;
  auto made = client->Factorize(matrices, options, cache, call);
  if (!made.ok()) return made.status();
  auto hold = HeldFactor::Hold(std::move(client), made->factor, cache, call);
  if (!hold.ok()) return hold.status();
  return Batch(*std::move(hold), *std::move(made));
}

absl::StatusOr<Batch> Batch::FactorizeAndSolve(std::shared_ptr<Client> client,
                                               const BatchSource& matrices,
                                               const BatchSource& sides, BatchSolution* solution,
                                               v1::FactorizeAndSolveHeader header,
                                               const CallOptions& call) {
  if (solution == nullptr)
    return absl::InvalidArgumentError("solution is null: pass a place for the solution");
  header.mutable_cache();
  const v1::CacheOptions cache = header.cache();
  FactoredBatch made;
  auto solved = client->FactorizeAndSolve(matrices, sides, std::move(header), &made, call);
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

absl::StatusOr<BatchSolution> Batch::Solve(const BatchSource& sides,
                                           const v1::SolveOptions& options,
                                           const CallOptions& call) const {
  if (absl::Status status = Confirm(call); !status.ok()) return status;
  return hold_->client().Solve(hold_->handle(), sides, options, call);
}

absl::Status Batch::Refactorize(const BatchSource& matrices, const v1::FactorizeOptions& options,
                                const CallOptions& call) {
  if (absl::Status status = Confirm(call); !status.ok()) return status;
  auto made = hold_->client().Refactorize(hold_->handle(), matrices, options, call);
  if (!made.ok()) return made.status();
  factored_ = *std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<BatchDownload> Batch::Download(int64_t first, int64_t count,
                                              const CallOptions& call) const {
  if (absl::Status status = Confirm(call); !status.ok()) return status;
  return hold_->client().GetMembers(hold_->handle(), first, count, call);
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
