// Runs the host device's work on its cores.
#ifndef CROUT_KERNELS_HOST_DEVICE_EXECUTOR_H_
#define CROUT_KERNELS_HOST_DEVICE_EXECUTOR_H_

#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "kernels/host/device/core_budget.h"
#include "kernels/util/mutex.h"

namespace crout::host {

// How much of the machine a piece of work takes. A function of the problem alone, never of the
// load: the same request gives the same bits
// (docs/decisions/0003-openblas-openmp-and-core-budget.md).
enum class Width : uint8_t { kOneCore, kAllCores };

// All cores for what reads or writes this many elements or more (8 MiB of float64).
inline constexpr int64_t kWideElements = int64_t{1} << 20;

constexpr Width WidthFor(int64_t elements) {
  return elements >= kWideElements ? Width::kAllCores : Width::kOneCore;
}

// Work of one core runs on the calling thread, that of all cores on one thread of the executor's
// own: the only one that ever opens an OpenMP team, so that the process has one team however many
// threads submit work. Both hold a lease on their cores. Thread-safe; destroyed when nothing runs.
class Executor {
 public:
  // `cores` >= 1.
  explicit Executor(int cores);
  ~Executor();
  Executor(const Executor&) = delete;  // Owns a thread.
  Executor& operator=(const Executor&) = delete;

  // Runs work(cores) and returns when it is done, or throws std::bad_alloc where it does. OpenBLAS
  // called from `work` uses that many threads; ParallelFor takes the number.
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
  bool no_memory_ ABSL_GUARDED_BY(mutex_) = false;      // what the last work ended with
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread team_;  // not started with one core
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_EXECUTOR_H_
