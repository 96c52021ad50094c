// SPDX-License-Identifier: Apache-2.0

// Keeps buffers alive until the device has finished with them, on every exit path of a job.
#ifndef CROUT_KERNELS_SYNC_ON_EXIT_H_
#define CROUT_KERNELS_SYNC_ON_EXIT_H_

#include "kernels/execution_context.h"

namespace crout {

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

#endif  // CROUT_KERNELS_SYNC_ON_EXIT_H_
