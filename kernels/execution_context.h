// What a job runs on: one stream of a device with its vendor handles, warm and exclusive.
#ifndef CROUT_KERNELS_EXECUTION_CONTEXT_H_
#define CROUT_KERNELS_EXECUTION_CONTEXT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix_ops.h"
#include "kernels/stop_requested.h"

namespace crout {

class Device;
class KrylovOps;
class SparseOps;

// What kernels tell the host. Lives in host memory that the device can write (pinned, for CUDA);
// a field is valid after Synchronize() following the call that fills it.
struct DeviceReport {
  MatrixStats matrix;
  ScaleStats scale;
  FactorStats factor;
  ResidualStats residual;
  PreparationStats preparation;
  EntryStats entries;
  ValueStats values;
  int32_t info = 0;  // LAPACK's: > 0 is the 1-based index of the first exactly zero pivot
  // The other way: non-zero tells the kernels of a stoppable method to end. Cleared by its Factor.
  volatile uint32_t stop = 0;

  // Columns of L and U that are final in the factorization that runs. Factorize starts it at 0;
  // stoppable methods tell it where they look whether to stop, those of CUDA from their kernels;
  // the others leave it at 0. Any thread may tell and read it.
  void TellColumns(int64_t columns);
  int64_t ColumnsDone();

  int64_t columns_told = 0;
};

// Used by one thread at a time. Calls that take a context enqueue work on its stream and may return
// before that work ran; work on one context runs in the order of the calls. On the host device
// everything has happened when a call returns.
class ExecutionContext {
 public:
  virtual ~ExecutionContext() = default;

  virtual Device& device() = 0;
  virtual MatrixOps& ops() = 0;
  // Null where DeviceInfo::has_sparse_ops is false.
  virtual SparseOps* sparse_ops() { return nullptr; }
  // Null on a device that has none.
  virtual KrylovOps* krylov_ops() { return nullptr; }
  virtual DeviceReport& report() = 0;

  // Waits until everything enqueued has run. An error of the device, once seen, stays: the status
  // is UNAVAILABLE and device().healthy() is false from then on.
  virtual absl::Status Synchronize() = 0;

  // As Synchronize(); sets report().stop when `stop` says so, which a stoppable method obeys.
  virtual absl::Status SynchronizeOrStop(StopRequested stop) {
    (void)stop;
    return Synchronize();
  }
};

}  // namespace crout

#endif  // CROUT_KERNELS_EXECUTION_CONTEXT_H_
