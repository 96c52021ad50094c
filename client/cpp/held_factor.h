// SPDX-License-Identifier: Apache-2.0

// A factor on a server with its lease, shared by the object interfaces.
#ifndef CROUT_CLIENT_CPP_HELD_FACTOR_H_
#define CROUT_CLIENT_CPP_HELD_FACTOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/lease_keeper.h"
#include "crout/client.h"

namespace crout::client {

// Thread-safe.
class HeldFactor {
 public:
  // INVALID_ARGUMENT for a request_id without a lease, because the server does not report the lease
  // of an existing factor.
  static absl::Status Check(const v1::CacheOptions& cache);
  // Holds the factor `made` of a call with `cache`, which passed Check. With a request_id the
  // factor may be older and have another lease: renews the lease and returns an error of the
  // renewal.
  static absl::StatusOr<std::shared_ptr<const HeldFactor>> Hold(std::shared_ptr<Client> client,
                                                                const v1::Factor& made,
                                                                const v1::CacheOptions& cache,
                                                                const CallOptions& call);

  // Renews the lease while the object lives.
  HeldFactor(std::shared_ptr<Client> client, std::string handle, absl::Duration lease);
  ~HeldFactor() { Drop(); }
  HeldFactor(const HeldFactor&) = delete;  // One object renews the lease.
  HeldFactor& operator=(const HeldFactor&) = delete;

  Client& client() const { return *client_; }
  const std::string& handle() const { return handle_; }

  absl::Status LeaseStatus() const { return client_->leases_->StatusOf(*lease_); }
  // Checks the lease before a use, as LeaseKeeper::Confirm. FAILED_PRECONDITION if `hold` is null.
  static absl::Status Confirm(const HeldFactor* hold, const CallOptions& call);
  // Stops the renewals.
  void Drop() const { client_->leases_->Drop(lease_); }

 private:
  const std::shared_ptr<Client> client_;
  const std::string handle_;
  const std::shared_ptr<LeaseKeeper::Lease> lease_;
};

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_HELD_FACTOR_H_
