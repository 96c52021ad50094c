// A factor on a server and its lease, as objects hold it.
#ifndef CROUT_CLIENT_CPP_HELD_FACTOR_H_
#define CROUT_CLIENT_CPP_HELD_FACTOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/lease_keeper.h"
#include "crout/client.h"

namespace crout::client {

// The client, the handle and its lease. Thread-safe.
class HeldFactor {
 public:
  // INVALID_ARGUMENT for a request_id without a lease: a factor that is there already does not tell
  // how long its lease is.
  static absl::Status Check(const v1::CacheOptions& cache);
  // Of a factor that a call with `cache`, which was checked, has just made. Renews one with a
  // request_id, which may have been there before with another lease: the error of that.
  static absl::StatusOr<std::shared_ptr<const HeldFactor>> Hold(std::shared_ptr<Client> client,
                                                                const v1::Factor& made,
                                                                const v1::CacheOptions& cache,
                                                                const CallOptions& call);

  // Renews it meanwhile.
  HeldFactor(std::shared_ptr<Client> client, std::string handle, absl::Duration lease);
  ~HeldFactor() { Drop(); }
  HeldFactor(const HeldFactor&) = delete;  // One lease, one holder.
  HeldFactor& operator=(const HeldFactor&) = delete;

  Client& client() const { return *client_; }
  const std::string& handle() const { return handle_; }

  absl::Status LeaseStatus() const { return client_->leases_->StatusOf(*lease_); }
  // Before a use of `hold`: FAILED_PRECONDITION if it is null, else as LeaseKeeper::Confirm.
  static absl::Status Confirm(const HeldFactor* hold, const CallOptions& call);
  // Ends the renewals.
  void Drop() const { client_->leases_->Drop(lease_); }

 private:
  const std::shared_ptr<Client> client_;
  const std::string handle_;
  const std::shared_ptr<LeaseKeeper::Lease> lease_;
};

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_HELD_FACTOR_H_
