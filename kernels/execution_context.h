// SPDX-License-Identifier: Apache-2.0

// Execution context of a job: one stream of a device with its vendor handles, warm and exclusive.
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

// Results that kernels report to the host. Lives in host memory that the device can write (pinned
// memory for CUDA). A field is valid after the Synchronize() that follows the call which fills it.
struct DeviceReport {
  MatrixStats matrix;
  ScaleStats scale;
  FactorStats factor;
  ResidualStats residual;
  PreparationStats preparation;
  EntryStats entries;
  ValueStats values;
  int32_t info = 0;  // LAPACK's info: > 0 is the 1-based index of the first exactly zero pivot
  // Stop flag from the host to kernels: nonzero makes a stoppable method end. Factor clears it.
  volatile uint32_t stop = 0;

  // Number of final columns of L and U in the current factorization. Factorize resets it to 0.
  // Stoppable methods report progress at their stop checks, CUDA methods from their kernels; other
  // methods leave it at 0. May be written and read from any thread.
  void ReportColumns(int64_t columns);
  int64_t ColumnsDone();

  int64_t reported_columns = 0;
};

// Used by one thread at a time. Calls that take a context enqueue work on its stream and may return
// before this work has run. Work on one context runs in call order. On the host device, work is
// complete when the call returns.
class ExecutionContext {
 public:
  virtual ~ExecutionContext() = default;

  virtual Device& device() = 0;
  virtual MatrixOps& ops() = 0;
  // Null if DeviceInfo::has_sparse_ops is false.
  virtual SparseOps* sparse_ops() { return nullptr; }
  // Null if the device has no Krylov operations.
  virtual KrylovOps* krylov_ops() { return nullptr; }
  virtual DeviceReport& report() = 0;

  // Waits until all enqueued work has run. Device errors are permanent: once one was seen, the
  // status is UNAVAILABLE and device().healthy() is false.
  virtual absl::Status Synchronize() = 0;

  // Same as Synchronize(), but polls `stop` while waiting and sets report().stop when it returns
  // true.
  virtual absl::Status SynchronizeOrStop(StopRequested stop) {
    (void)stop;
    return Synchronize();
  }

  // Returns true if the job on this context must stop (see StopScope). Host operations that can
  // take seconds poll this function and return CANCELLED. Any thread of the job may call it.
  bool stop_requested() const { return stop_ != nullptr && (*stop_)(); }

 private:
  friend class StopScope;

  const StopRequested* stop_ = nullptr;
};

// Makes stop_requested() of `context` call `stop`, which outlives the scope, until the scope ends.
class StopScope {
 public:
  StopScope(ExecutionContext& context, StopRequested stop)
      : context_(context), stop_(stop), outer_(context.stop_) {
    context_.stop_ = &stop_;
  }
  ~StopScope() { context_.stop_ = outer_; }
  StopScope(const StopScope&) = delete;  // the context points to it
  StopScope& operator=(const StopScope&) = delete;

 private:
  ExecutionContext& context_;
  const StopRequested stop_;
  const StopRequested* const outer_;
};

// Waits for enqueued work on destruction, unless Dismiss() was called after the last Synchronize().
// Declare it after the buffers that the work uses, so that it is destroyed first.
class SyncOnExit {
 public:
  explicit SyncOnExit(ExecutionContext& context) : context_(&context) {}
  ~SyncOnExit() {
    // Another error is already being returned; a device error remains in the context.
    if (context_ != nullptr) context_->Synchronize().IgnoreError();
  }
  SyncOnExit(const SyncOnExit&) = delete;  // One wait for each scope.
  SyncOnExit& operator=(const SyncOnExit&) = delete;

  void Dismiss() { context_ = nullptr; }

 private:
  ExecutionContext* context_;
};

}  // namespace crout

#endif  // CROUT_KERNELS_EXECUTION_CONTEXT_H_
