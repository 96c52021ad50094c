// Keeps buffers alive until the device is done with them, on every way out of a job.
#ifndef CROUT_KERNELS_SYNC_ON_EXIT_H_
#define CROUT_KERNELS_SYNC_ON_EXIT_H_

#include "kernels/execution_context.h"

namespace crout {

// Declared after the buffers that enqueued work uses, so that it is destroyed before them: waits
// for that work unless Dismiss() was called after the last Synchronize().
class SyncOnExit {
 public:
  explicit SyncOnExit(ExecutionContext& context) : context_(&context) {}
  ~SyncOnExit() {
    // On the way out with another error already; the device's own stays in the context.
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
