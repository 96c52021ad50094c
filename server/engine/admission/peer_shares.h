// SPDX-License-Identifier: Apache-2.0

// The memory of calls, by the peer that makes them.
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

// Divides a budget among peers. A peer alone may hold all of it. When the budget is full and a peer
// asks that holds less than a quarter, the peer that holds most beyond its quarter gives way: its
// newest holders end, and the asking peer gets the bytes at once. Until an ended holder is gone its
// bytes are charged to a budget of their own, a quarter of the first. Thread-safe; outlives its
// charges.
class PeerShares {
 public:
  // Owns charges, and can be ended for another peer's sake.
  class Holder {
   public:
    virtual ~Holder() = default;
    // Ends the holder later, on another thread. The caller may hold any lock.
    virtual void GiveWay() = 0;
  };

 private:
  struct Held {
    Reservation bytes;
    std::weak_ptr<Holder> holder;
    bool leaving = false;  // charged to `leaving_`
  };
  struct Share {
    size_t bytes = 0;      // without those that leave
    std::list<Held> held;  // the oldest first
  };
  using Shares = std::map<std::string, Share, std::less<>>;

 public:
  // Bytes of one peer, given back on destruction. Move-only, not thread-safe.
  class Charge {
   public:
    Charge() = default;
    ~Charge() { Release(); }
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&& other) noexcept;
    void Release();

   private:
    friend class PeerShares;
    Charge(PeerShares* shares, Shares::iterator share, std::list<Held>::iterator held)
        : shares_(shares), share_(share), held_(held) {}

    PeerShares* shares_ = nullptr;
    Shares::iterator share_;
    std::list<Held>::iterator held_;
  };

  explicit PeerShares(MemoryBudget& budget)
      : budget_(budget), quarter_(budget.limit() / 4), leaving_(quarter_) {}
  PeerShares(const PeerShares&) = delete;  // Charges point to it.
  PeerShares& operator=(const PeerShares&) = delete;

  // All of `bytes` or nothing; never waits. `peer` is "" for one that is exempt: it never gives
  // way.
  std::optional<Charge> TryCharge(std::string_view peer, size_t bytes,
                                  std::weak_ptr<Holder> holder);

 private:
  using Ended = std::vector<std::shared_ptr<Holder>>;

  std::optional<Reservation> Reserve(std::string_view peer, size_t bytes, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the peer with most beyond its quarter give way with one charge; false where none can.
  bool MakeOneGiveWay(Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Give(Shares::iterator share, std::list<Held>::iterator held);

  MemoryBudget& budget_;
  const size_t quarter_;
  MemoryBudget leaving_;
  Mutex mutex_;
  Shares shares_ ABSL_GUARDED_BY(mutex_);  // of peers that hold something
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_ADMISSION_PEER_SHARES_H_
