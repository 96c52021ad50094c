// SPDX-License-Identifier: Apache-2.0

// Runs the host device's work on its cores, which its jobs share.
#ifndef CROUT_KERNELS_HOST_DEVICE_EXECUTOR_H_
#define CROUT_KERNELS_HOST_DEVICE_EXECUTOR_H_

#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
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

// Number of cores a piece of work uses. Depends only on the problem, never on the load, so that the
// same request gives the same bits (docs/decisions/0003-openblas-openmp-and-core-budget.md).
enum class Width : uint8_t { kOneCore, kAllCores };

// Work that reads or writes at least this many elements (8 MiB of float64) uses all cores.
inline constexpr int64_t kWideElements = int64_t{1} << 20;

constexpr Width WidthFor(int64_t elements) {
  return elements >= kWideElements ? Width::kAllCores : Width::kOneCore;
}

// Runs one-core work on the calling thread and all-core work on one thread of its own. Only that
// thread opens OpenMP teams, so the process has one team for any number of submitting threads. Both
// kinds of work hold a lease on their cores. Thread-safe. Destroy it only when no work runs.
class Executor {
 public:
  // `cores` >= 1.
  explicit Executor(int cores);
  ~Executor();
  Executor(const Executor&) = delete;  // Owns a thread.
  Executor& operator=(const Executor&) = delete;

  // Runs work(cores) and returns when it is done. Throws std::bad_alloc if `work` does. OpenBLAS
  // calls from `work` use `cores` threads; pass `cores` to ParallelFor.
  void Run(Width width, absl::FunctionRef<void(int cores)> work);

  const CoreBudget& budget() const { return budget_; }

 private:
  using Work = absl::FunctionRef<void(int)>;

  void RunOnTeam(Work work);
  void TeamLoop();

  CoreBudget budget_;
  Mutex mutex_;
  CondVar changed_;
  const Work* work_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null: the team is idle
  bool no_memory_ ABSL_GUARDED_BY(mutex_) = false;      // the last work threw std::bad_alloc
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread team_;  // not started if there is one core
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_EXECUTOR_H_
