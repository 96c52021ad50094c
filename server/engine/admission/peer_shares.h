// SPDX-License-Identifier: Apache-2.0

// Shares of the call memory, by peer.
#ifndef CROUT_SERVER_ENGINE_ADMISSION_PEER_SHARES_H_
#define CROUT_SERVER_ENGINE_ADMISSION_PEER_SHARES_H_

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"
#include "server/engine/admission/memory_budget.h"

namespace crout {

// Divides a budget among peers. One peer may hold the whole budget while no other peer needs it.
//
// If the budget is full, a peer still gets memory as long as its share stays within a quarter of
// the budget. The memory comes from the peer with the largest share above a quarter. That peer
// loses its newest charges, one by one: TryCharge calls Preempt on their holders and moves their
// bytes to a second budget, which is a quarter of the first. The bytes stay there until the holders
// release them. TryCharge fails if the second budget has too little free memory, or if no peer has
// more than a quarter.
//
// Thread-safe. Outlives its charges.
class PeerShares {
 public:
  // An owner of charges, such as a call, that can be ended to free memory for another peer.
  class Holder {
   public:
    virtual ~Holder() = default;
    // Requests that the holder ends and releases its charges. The holder must do so on another
    // thread, because the caller may hold any lock.
    virtual void Preempt() = 0;
  };

 private:
  struct ChargeRecord {
    Reservation bytes;
    std::weak_ptr<Holder> holder;
    bool preempted = false;  // `bytes` are reserved from preempted_
  };
  struct Share {
    size_t bytes = 0;                 // without preempted charges
    std::list<ChargeRecord> records;  // oldest first
  };
  using Shares = std::map<std::string, Share, std::less<>>;

 public:
  // Bytes charged to one peer. Returns them on destruction. Move-only, not thread-safe.
  class Charge {
   public:
    Charge() = default;
    ~Charge() { Release(); }
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&& other) noexcept;
    void Release();

   private:
    friend class PeerShares;
    Charge(PeerShares* shares, Shares::iterator share, std::list<ChargeRecord>::iterator record)
        : shares_(shares), share_(share), record_(record) {}

    PeerShares* shares_ = nullptr;
    Shares::iterator share_;
    std::list<ChargeRecord>::iterator record_;
  };

  explicit PeerShares(MemoryBudget& budget)
      : budget_(budget), quarter_(budget.limit() / 4), preempted_(quarter_) {}
  PeerShares(const PeerShares&) = delete;  // Charges point to it.
  PeerShares& operator=(const PeerShares&) = delete;

  // Charges all of `bytes` to `peer`, or returns nothing. Never waits. An empty `peer` stands for
  // all exempt peers: their charges are never ended, and they get memory of peers above a quarter
  // whatever their own share is.
  std::optional<Charge> TryCharge(std::string_view peer, size_t bytes,
                                  std::weak_ptr<Holder> holder);

 private:
  using Ended = std::vector<std::shared_ptr<Holder>>;

  // Reserves `bytes`, ending charges of other peers if necessary. Appends their holders to `ended`;
  // the caller calls Preempt on them after releasing the lock.
  std::optional<Reservation> Reserve(std::string_view peer, size_t bytes, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the newest charge of the peer with the largest share above a quarter to `preempted_`.
  // Returns false if no peer is above a quarter or `preempted_` has too little free memory.
  bool PreemptOne(Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReturnCharge(Shares::iterator share, std::list<ChargeRecord>::iterator record);

  MemoryBudget& budget_;
  const size_t quarter_;
  MemoryBudget preempted_;
  Mutex mutex_;
  Shares shares_ ABSL_GUARDED_BY(mutex_);  // only peers that have charges
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_ADMISSION_PEER_SHARES_H_
