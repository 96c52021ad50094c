// SPDX-License-Identifier: Apache-2.0

#include "crout/factor.h"

#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/lease_keeper.h"
#include "client/cpp/payload.h"

namespace crout {
inline namespace api {
namespace {

using internal::HeldFactor;

// Returns the source from which a lost factor is made again. INVALID_ARGUMENT if that is
// impossible.
absl::StatusOr<MatrixSource> CopyOf(const MatrixSource& matrix) {
  if (matrix.payload().repeatable() && !matrix.payload().spec.has_values()) return matrix.Copy();
  return absl::InvalidArgumentError(
      "OnLost::kRefactor needs a whole matrix in memory or in a file, not a pipe or values alone");
}

}  // namespace

absl::StatusOr<Factor> Factor::Make(std::shared_ptr<Client> client, const MatrixSource& matrix,
                                    const FactorOptions& options, const CacheOptions& cache,
                                    const CallOptions& call, OnLost on_lost) {
  if (absl::Status checked = HeldFactor::Check(cache); !checked.ok()) return checked;
  std::optional<internal::FactorOrigin> origin;
  if (on_lost == OnLost::kRefactor) {
    absl::StatusOr<MatrixSource> copy = CopyOf(matrix);
    if (!copy.ok()) return copy.status();
    origin = {.matrix = *std::move(copy), .options = options, .cache = cache};
  }
  absl::StatusOr<FactorDescription> made = client->Factor(matrix, options, cache, call);
  if (!made.ok()) return made.status();
  auto hold = HeldFactor::Hold(std::move(client), *made, cache, call);
  if (!hold.ok()) return hold.status();
  if (origin) (*hold)->SetOrigin(*std::move(origin));
  return Factor(*std::move(hold), *std::move(made));
}

absl::StatusOr<Factor> Factor::Attach(std::shared_ptr<Client> client,
                                      const std::string& handle_or_name, const CallOptions& call) {
  std::optional<FactorDescription> found;
  if (IsHandle(handle_or_name)) {
    auto described = client->Describe(handle_or_name, call);
    if (!described.ok()) return described.status();
    found = *std::move(described);
  } else if (handle_or_name.empty()) {
    return absl::InvalidArgumentError("the handle or name of the factor is empty");
  } else {
    absl::Status listed = client->List(
        handle_or_name,
        [&](const FactorDescription& newest) {
          found = newest;
          return false;
        },
        call);
    if (!listed.ok()) return listed;
  }
  if (!found) {
    return absl::NotFoundError(
        absl::StrCat("no factor is named '", handle_or_name, "': factor the matrix again"));
  }
  auto hold = std::make_shared<HeldFactor>(std::move(client), found->handle);
  return Factor(std::move(hold), *std::move(found));
}

Factor::Factor(std::shared_ptr<HeldFactor> hold, FactorDescription description)
    : hold_(std::move(hold)), description_(std::move(description)) {}

Factor& Factor::operator=(Factor&& other) noexcept {
  Factor taken(std::move(other));
  std::swap(hold_, taken.hold_);
  std::swap(description_, taken.description_);
  return *this;
}

Factor::~Factor() {
  if (hold_ == nullptr || attached()) return;
  CallOptions call;
  call.timeout = absl::Seconds(5);
  Release(call).IgnoreError();  // If this fails, the factor lives until its lease ends.
}

bool Factor::attached() const { return hold_ != nullptr && !hold_->renews(); }

absl::Status Factor::lease_status() const {
  return hold_ == nullptr ? absl::OkStatus() : hold_->LeaseStatus();
}

std::string Factor::handle() const { return hold_ == nullptr ? std::string() : hold_->handle(); }

absl::StatusOr<SolveResult> Factor::SolveWith(HeldFactor* hold, const MatrixSource& rhs,
                                              const SolveOptions& options, MatrixSink* x,
                                              const CallOptions& call) {
  absl::StatusOr<SolveResult> result;
  const absl::Status status =
      HeldFactor::Use(hold, call, [&](const std::string& handle, const CallOptions& rest) {
        result = hold->client().Solve(handle, rhs, options, x, rest);
        return result.status();
      });
  if (!status.ok()) return status;
  return result;
}

absl::StatusOr<SolveResult> Factor::Solve(const MatrixSource& rhs, const SolveOptions& options,
                                          MatrixSink* x, const CallOptions& call) const {
  return SolveWith(hold_.get(), rhs, options, x, call);
}

std::future<absl::StatusOr<SolveResult>> Factor::SolveAsync(const MatrixSource& rhs,
                                                            const SolveOptions& options,
                                                            MatrixSink* x,
                                                            const CallOptions& call) const {
  std::promise<absl::StatusOr<SolveResult>> refused;
  try {
    return std::async(std::launch::async, [hold = hold_, rhs, options, x, call] {
      return SolveWith(hold.get(), rhs, options, x, call);
    });
  } catch (const std::system_error& error) {
    refused.set_value(absl::ResourceExhaustedError(error.what()));
  }
  return refused.get_future();
}

absl::Status Factor::Refactor(const MatrixSource& matrix, const RefactorOptions& options,
                              const CallOptions& call) {
  std::optional<MatrixSource> copy;
  if (hold_ != nullptr && hold_->has_origin()) {
    absl::StatusOr<MatrixSource> made = CopyOf(matrix);
    if (!made.ok()) return made.status();
    copy = *std::move(made);
  }
  const absl::Status status =
      HeldFactor::Use(hold_.get(), call, [&](const std::string& handle, const CallOptions& rest) {
        auto made = hold_->client().Refactor(handle, matrix, options, rest);
        if (made.ok()) description_ = *std::move(made);
        return made.status();
      });
  if (status.ok() && copy) {
    hold_->SetOrigin({.matrix = *std::move(copy),
                      .options = options.factor,
                      .cache = {.name = description_.name,
                                .pin = description_.pinned,
                                .durable = description_.durable}});
  }
  return status;
}

absl::StatusOr<FactorDescription> Factor::Describe(const CallOptions& call) const {
  absl::StatusOr<FactorDescription> result;
  const absl::Status status =
      HeldFactor::Use(hold_.get(), call, [&](const std::string& handle, const CallOptions& rest) {
        result = hold_->client().Describe(handle, rest);
        return result.status();
      });
  if (!status.ok()) return status;
  return result;
}

absl::Status Factor::Release(const CallOptions& call) {
  if (hold_ == nullptr) {
    return HeldFactor::Use(nullptr, call,
                           [](const std::string&, const CallOptions&) { return absl::OkStatus(); });
  }
  const std::shared_ptr<HeldFactor> hold = std::exchange(hold_, nullptr);
  description_ = {};
  hold->Drop();
  return hold->client().Release(hold->handle(), call);
}

}  // namespace api
}  // namespace crout
