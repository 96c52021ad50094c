// SPDX-License-Identifier: Apache-2.0

#include "crout/cancellation.h"

#include <grpcpp/client_context.h>

#include <algorithm>

namespace crout::client {

void Cancellation::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
}

bool Cancellation::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

bool Cancellation::WaitFor(absl::Duration duration) const {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&cancelled_), duration);
}

void Cancellation::Attach(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_) context->TryCancel();  // Takes effect as soon as the call starts.
  contexts_.push_back(context);
}

void Cancellation::Detach(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  contexts_.erase(std::remove(contexts_.begin(), contexts_.end(), context), contexts_.end());
}

}  // namespace crout::client
