// Renews leases in the background.
#ifndef CROUT_CLIENT_CPP_LEASE_KEEPER_H_
#define CROUT_CLIENT_CPP_LEASE_KEEPER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "crout/cancellation.h"
#include "crout/options.h"

namespace crout::client {

// One thread, started by the first lease, renews all leases that it keeps: each after half of its
// length, counted on this side's clock, and after a failure every sixteenth of it, at least once a
// day in either case, until it succeeds or the server says that there is no such factor.
// Thread-safe. (A standard mutex: waits go by the steady clock, which absl::CondVar does not know.)
class LeaseKeeper {
 public:
  using Renew = std::function<absl::Status(const std::string& handle, absl::Duration length,
                                           const CallOptions& call)>;

  // What is kept. Opaque to callers.
  struct Lease;

  // `renew` is called on the keeper's thread and on those of Confirm's callers.
  explicit LeaseKeeper(Renew renew);
  ~LeaseKeeper();                            // A renewal under way is cancelled.
  LeaseKeeper(const LeaseKeeper&) = delete;  // The thread refers to it.
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // Keeps a lease of `length`, which started just now. Where no thread can be started the failure
  // is the lease's status, and Confirm tries again.
  std::shared_ptr<Lease> Keep(std::string handle, absl::Duration length);
  // No renewal of it starts afterwards; one that is under way is not waited for.
  void Drop(const std::shared_ptr<Lease>& lease);

  // How the last renewal ended.
  absl::Status StatusOf(const Lease& lease) const;
  // Before a use: OK if the last renewal did not fail. If it did, in a way that may pass, renews on
  // the calling thread. The error says that it is the renewal that failed, with the server's code
  // and details.
  absl::Status Confirm(const std::shared_ptr<Lease>& lease, const CallOptions& call);

 private:
  using Clock = std::chrono::steady_clock;
  using Queue = std::set<std::pair<Clock::time_point, std::shared_ptr<Lease>>>;

  void Run();
  absl::Status RenewNow(const Lease& lease, const CallOptions& call) const;
  // Notes how the renewal that began at `begin` ended, and when the next is due. mutex_ is held.
  void Settle(const std::shared_ptr<Lease>& lease, Clock::time_point begin, absl::Status status);
  void Enqueue(const std::shared_ptr<Lease>& lease, Clock::time_point due);

  const Renew renew_;
  Cancellation stop_;  // of the thread's renewals

  mutable std::mutex mutex_;  // guards all below, and what changes in leases
  std::condition_variable wake_;
  bool stopping_ = false;
  Queue queue_;
  std::thread thread_;
};

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_LEASE_KEEPER_H_
