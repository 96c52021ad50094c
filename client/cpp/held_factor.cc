// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/held_factor.h"

#include <utility>

namespace crout::client {
namespace {

absl::Time TimeOf(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

absl::Duration DurationOf(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace

absl::Status HeldFactor::Check(const v1::CacheOptions& cache) {
  if (cache.request_id().empty() || DurationOf(cache.lease()) != absl::ZeroDuration()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("a request_id needs a lease: set cache.lease");
}

absl::StatusOr<std::shared_ptr<const HeldFactor>> HeldFactor::Hold(std::shared_ptr<Client> client,
                                                                   const v1::Factor& made,
                                                                   const v1::CacheOptions& cache,
                                                                   const CallOptions& call) {
  const absl::Duration wanted = DurationOf(cache.lease());
  // Both times are on the server's clock, which may differ from the local clock.
  const absl::Duration granted = TimeOf(made.lease_expire_time()) - TimeOf(made.create_time());
  auto hold = std::make_shared<const HeldFactor>(std::move(client), made.handle(),
                                                 wanted == absl::ZeroDuration() ? granted : wanted);
  if (cache.request_id().empty()) return hold;
  const auto renewed = hold->client().Renew(hold->handle(), wanted, call);
  if (!renewed.ok()) return renewed.status();
  return hold;
}

HeldFactor::HeldFactor(std::shared_ptr<Client> client, std::string handle, absl::Duration lease)
    : client_(std::move(client)),
      handle_(std::move(handle)),
      lease_(client_->leases_->Keep(handle_, lease)) {}

absl::Status HeldFactor::Confirm(const HeldFactor* hold, const CallOptions& call) {
  if (hold == nullptr) {
    return absl::FailedPreconditionError(
        "the factor was released or moved from: factor the matrix again");
  }
  return hold->client_->leases_->Confirm(hold->lease_, call);
}

}  // namespace crout::client
