// SPDX-License-Identifier: Apache-2.0

// Leases that are renewed in the background, and the factors that hold them.
#ifndef CROUT_CLIENT_CPP_LEASE_KEEPER_H_
#define CROUT_CLIENT_CPP_LEASE_KEEPER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "crout/cancellation.h"
#include "crout/client.h"
#include "crout/client_options.h"
#include "crout/matrix_source.h"
#include "crout/options.h"

namespace crout {
inline namespace api {
namespace internal {

// Renews all leases on one thread, which the first lease starts. A lease is renewed after half of
// its length by the local clock; a failed renewal is retried after a sixteenth of it. Either
// interval is at least 20 ms and at most a day. Renewal stops if the server no longer has the
// factor. Thread-safe. (Uses std::mutex: waits use the steady clock, which absl::CondVar does not
// support.)
class LeaseKeeper {
 public:
  using Renew = std::function<absl::Status(const std::string& handle, absl::Duration length,
                                           const CallOptions& call)>;

  // A lease that is renewed; opaque to callers.
  struct Lease;

  // `renew` is called on the keeper's thread and on the threads that call Confirm.
  explicit LeaseKeeper(Renew renew);
  ~LeaseKeeper();                            // Cancels a running renewal.
  LeaseKeeper(const LeaseKeeper&) = delete;  // The thread refers to it.
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // Renews a lease of `length` that starts now, until Drop. If the thread cannot be started, the
  // failure becomes the status of the lease and Confirm retries.
  std::shared_ptr<Lease> Keep(std::string handle, absl::Duration length);
  // Starts no further renewal of the lease; does not wait for a running one.
  void Drop(const std::shared_ptr<Lease>& lease);

  // Status of the last renewal; OK before the first.
  absl::Status StatusOf(const Lease& lease) const;
  // Called before a use. OK if the last renewal succeeded. If the last renewal failed with an error
  // that may be temporary, renews on the calling thread. Errors have the server's code and details,
  // and a message that the lease was not renewed.
  absl::Status Confirm(const std::shared_ptr<Lease>& lease, const CallOptions& call);

 private:
  using Clock = std::chrono::steady_clock;
  using Queue = std::set<std::pair<Clock::time_point, std::shared_ptr<Lease>>>;

  void Run();
  absl::Status RenewNow(const Lease& lease, const CallOptions& call) const;
  // Records the status of the renewal that began at `begin` and schedules the next renewal.
  // Requires mutex_.
  void Settle(const std::shared_ptr<Lease>& lease, Clock::time_point begin, absl::Status status);
  // Schedules a renewal and starts the thread if necessary. Requires mutex_.
  void Enqueue(const std::shared_ptr<Lease>& lease, Clock::time_point due);

  const Renew renew_;
  Cancellation stop_;  // for the thread's renewals

  mutable std::mutex mutex_;  // guards all members below and the mutable fields of leases
  std::condition_variable wake_;
  bool stopping_ = false;
  Queue queue_;
  std::thread thread_;
};

// The matrix and the options from which a lost factor is made again.
struct FactorOrigin {
  MatrixSource matrix;
  FactorOptions options;
  CacheOptions cache;
};

// A factor on a server with its lease, shared by the object interfaces. With an origin, a use makes
// a factor again that the server has lost; the handle then changes. Thread-safe.
class HeldFactor {
 public:
  // INVALID_ARGUMENT for a request_id without a lease, because an existing factor does not report
  // the length of its lease.
  static absl::Status Check(const CacheOptions& cache);
  // Holds the factor that a call with `cache` (already checked) has made. With a request_id the
  // factor may be older and have another lease; it is then renewed, and the error of the renewal is
  // returned.
  static absl::StatusOr<std::shared_ptr<HeldFactor>> Hold(std::shared_ptr<Client> client,
                                                          const FactorDescription& made,
                                                          const CacheOptions& cache,
                                                          const CallOptions& call);

  // Renews the lease while the object lives.
  HeldFactor(std::shared_ptr<Client> client, std::string handle, absl::Duration lease);
  // Renews no lease.
  HeldFactor(std::shared_ptr<Client> client, std::string handle)
      : client_(std::move(client)), current_{.handle = std::move(handle)} {}
  ~HeldFactor() { Drop(); }
  HeldFactor(const HeldFactor&) = delete;  // The lease has one holder.
  HeldFactor& operator=(const HeldFactor&) = delete;

  Client& client() const { return *client_; }
  std::string handle() const { return current().handle; }

  bool renews() const { return current().lease != nullptr; }

  absl::Status LeaseStatus() const;
  // Sets the matrix from which a lost factor is made again. Requires renews().
  void SetOrigin(FactorOrigin origin);
  // Whether SetOrigin was called.
  bool has_origin() const;

  // Calls `use` with the handle and the options of a call that ends at the deadline of `call`,
  // after LeaseKeeper::Confirm. If the server has lost the factor and there is an origin, makes it
  // again and repeats the call. FAILED_PRECONDITION if `hold` is null.
  static absl::Status Use(
      HeldFactor* hold, const CallOptions& call,
      absl::FunctionRef<absl::Status(const std::string& handle, const CallOptions& call)> use);
  // Stops the renewals.
  void Drop();

 private:
  struct Current {
    std::string handle;
    std::shared_ptr<LeaseKeeper::Lease> lease = nullptr;  // null: none is renewed
  };

  Current current() const {
    std::lock_guard lock(mutex_);
    return current_;
  }
  // Makes the factor again, unless another thread has already replaced the handle `lost`.
  absl::Status MakeAgain(const std::string& lost, const CallOptions& call);

  const std::shared_ptr<Client> client_;
  const absl::Duration lease_length_;
  mutable std::mutex mutex_;  // guards all members below
  Current current_;
  std::optional<FactorOrigin> origin_;
  bool dropped_ = false;
};

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_LEASE_KEEPER_H_
