// SPDX-License-Identifier: Apache-2.0

// Shares the machine's cores among the jobs of the host device.
#ifndef CROUT_KERNELS_HOST_DEVICE_CORE_BUDGET_H_
#define CROUT_KERNELS_HOST_DEVICE_CORE_BUDGET_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"

namespace crout::host {

// Grants leases in the order of requests, so that requests for one core cannot starve a request for
// many. Thread-safe.
class CoreBudget {
 public:
  // Returns its cores on destruction. Move-only.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : budget_(other.budget_), cores_(other.cores_) {
      other.budget_ = nullptr;
    }
    Lease& operator=(Lease&&) = delete;  // A lease lives in one scope.
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

  // Blocks until all earlier requests are granted and `cores` (1..total) are free.
  Lease Acquire(int cores);

  // Maximum number of cores leased at the same time.
  int peak() const;
  // Number of waiting requests.
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
