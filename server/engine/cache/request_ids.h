// SPDX-License-Identifier: Apache-2.0

// Idempotence: the factor that was made under each request_id of a tenant.
#ifndef CROUT_SERVER_ENGINE_CACHE_REQUEST_IDS_H_
#define CROUT_SERVER_ENGINE_CACHE_REQUEST_IDS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"
#include "server/engine/cache/handle.h"

namespace crout {

// A call that waits for the claim of another call to end.
class RequestWaiter {
 public:
  virtual ~RequestWaiter() = default;

  // Called once from any thread: the id has its factor now, or is free. Must not block.
  virtual void OnClaimEnded() noexcept = 0;
};

// An id is free, claimed by a call that makes its factor, or has a factor. Thread-safe. Methods
// that are not noexcept may throw std::bad_alloc; they then change nothing.
class RequestIds {
  using Key = std::pair<std::string, std::string>;             // tenant, request_id
  using View = std::pair<std::string_view, std::string_view>;  // for lookups
  struct Less {
    using is_transparent = void;
    bool operator()(const View& a, const View& b) const { return a < b; }
  };
  using Waiters = std::map<const RequestWaiter*, std::weak_ptr<RequestWaiter>>;
  struct Request {
    std::optional<Handle> factor;  // nullopt: claimed
    Waiters waiters;               // calls that wait for the claim to end
  };
  using Requests = std::map<Key, Request, Less>;

 public:
  // Memory for one id, allocated in advance so that Complete() cannot fail. Empty for an empty id.
  class Node {
   public:
    Node(std::string_view tenant, std::string_view request_id);

   private:
    friend class RequestIds;
    Requests request_;
  };
  // Waiters of an ended claim, notified on destruction.
  class EndedClaim {
   public:
    EndedClaim() = default;
    EndedClaim(EndedClaim&& other) noexcept : waiters_(std::exchange(other.waiters_, {})) {}
    EndedClaim& operator=(EndedClaim&& other) noexcept {
      waiters_.swap(other.waiters_);
      return *this;
    }
    ~EndedClaim();

   private:
    friend class RequestIds;
    Waiters waiters_;
  };

  enum class State : uint8_t { kFree, kClaimed, kHasFactor };
  struct Found {
    State before = State::kFree;   // kFree: the id is now claimed by the caller
    std::optional<Handle> factor;  // if kHasFactor
  };
  // Claims a free id.
  Found Claim(std::string_view tenant, std::string_view request_id);
  // Claims an id whose factor is still `removed`, which no longer exists. Returns false otherwise.
  bool Reclaim(std::string_view tenant, std::string_view request_id,
               const Handle& removed) noexcept;
  // Sets the factor of the id of `allocated` and ends the claim, if there is one.
  EndedClaim Complete(Node allocated, const Handle& factor) noexcept;
  // Ends a claim without a factor.
  void Abandon(std::string_view tenant, std::string_view request_id) noexcept;
  // Frees the id if it still has this factor.
  void Remove(std::string_view tenant, std::string_view request_id, const Handle& factor) noexcept;

  // Notifies `waiter`, unless it has been destroyed, when the claim ends. Returns false if the id
  // is not claimed.
  bool Await(std::string_view tenant, std::string_view request_id,
             const std::shared_ptr<RequestWaiter>& waiter);
  // Removes the waiter, if it waits.
  void StopAwaiting(std::string_view tenant, std::string_view request_id,
                    const RequestWaiter* waiter) noexcept;
  // Returns true if a waiter waits for the claim to end.
  bool IsAwaited(std::string_view tenant, std::string_view request_id) const;

 private:
  mutable Mutex mutex_;
  Requests requests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_REQUEST_IDS_H_
