// Shares the machine's cores among the jobs of the host device.
#ifndef CROUT_KERNELS_HOST_DEVICE_CORE_BUDGET_H_
#define CROUT_KERNELS_HOST_DEVICE_CORE_BUDGET_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"

namespace crout::host {

// Leases are granted in the order of the requests, so that a request for many cores is not starved
// by a stream of requests for one. Thread-safe.
class CoreBudget {
 public:
  // Returns its cores when it is destroyed. Move-only.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : budget_(other.budget_), cores_(other.cores_) {
      other.budget_ = nullptr;
    }
    Lease& operator=(Lease&&) = delete;  // A lease is for one scope.
    ~Lease() {
      if (budget_ != nullptr) budget_->Release(cores_);
    }
    int cores() const { return cores_; }

   private:
    friend class CoreBudget;
    Lease(CoreBudget* budget, int cores) : budget_(budget), cores_(cores) {}
    CoreBudget* budget_;
    int cores_;
  };

  explicit CoreBudget(int cores) : total_(cores), free_(cores) {}

  int total() const { return total_; }

  // Blocks until `cores` (1..total) are free and nobody who asked earlier still waits.
  Lease Acquire(int cores);

  // Most cores that were leased at one time.
  int peak() const;
  // Requests that wait now.
  int waiting() const;

 private:
  void Release(int cores);

  const int total_;
  mutable Mutex mutex_;
  CondVar changed_;
  int free_ ABSL_GUARDED_BY(mutex_);
  int peak_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t serving_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_CORE_BUDGET_H_
