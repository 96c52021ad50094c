// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/call_scope.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "crout/cancellation.h"

namespace crout {
inline namespace api {
namespace internal {

CallScope::CallScope(const ClientOptions& client, const CallOptions& call, absl::Time deadline,
                     Replicas* replicas, std::string handle)
    : cancellation_(call.cancellation),
      deadline_(deadline),
      replicas_(replicas),
      handle_(std::move(handle)),
      context_(std::make_unique<grpc::ClientContext>()) {
  if (!client.tenant.empty()) context_->AddMetadata("crout-tenant", client.tenant);
  if (!client.token.empty()) {
    context_->AddMetadata("authorization", absl::StrCat("Bearer ", client.token));
  }
  if (const Priority priority = call.priority.value_or(client.priority);
      priority != Priority::kNormal) {
    context_->AddMetadata("crout-priority", Name(priority));
  }
  if (!call.traceparent.empty()) context_->AddMetadata("traceparent", call.traceparent);
  if (const std::string replica = replicas_->Find(handle_); !replica.empty()) {
    context_->AddMetadata(kReplicaMetadata, replica);
  }
  if (deadline != absl::InfiniteFuture()) context_->set_deadline(absl::ToChronoTime(deadline));
  if (cancellation_ != nullptr) cancellation_->Attach(this);
}

bool CallScope::cancelled() const { return cancellation_ != nullptr && cancellation_->cancelled(); }

absl::Status CallScope::Explain(absl::Status ended) const {
  // A server that stops cancels calls that arrive at that moment.
  if (!absl::IsCancelled(ended) || ended.message() != "CANCELLED" || cancelled()) return ended;
  return absl::UnavailableError("the server, which may be stopping, cancelled the call");
}

absl::Status CallScope::Check() const {
  if (cancelled()) {
    return absl::CancelledError("cancelled while the matrix was read");
  }
  if (absl::Now() < deadline_) return absl::OkStatus();
  return absl::DeadlineExceededError("the deadline passed while the matrix was read");
}

void CallScope::Close() {
  if (context_ == nullptr) return;
  if (cancellation_ != nullptr) cancellation_->Detach(this);
  const auto& trailers = context_->GetServerTrailingMetadata();
  if (const auto replica = trailers.find(kReplicaMetadata); replica != trailers.end()) {
    replicas_->Set(handle_, std::string(replica->second.data(), replica->second.size()));
  }
  context_.reset();
}

}  // namespace internal

void Cancellation::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  for (internal::CallScope* call : calls_) call->context()->TryCancel();
}

bool Cancellation::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

bool Cancellation::WaitFor(absl::Duration duration) const {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&cancelled_), duration);
}

void Cancellation::Attach(internal::CallScope* call) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_) call->context()->TryCancel();  // Takes effect as soon as the call starts.
  calls_.push_back(call);
}

void Cancellation::Detach(internal::CallScope* call) {
  absl::MutexLock lock(&mutex_);
  calls_.erase(std::remove(calls_.begin(), calls_.end(), call), calls_.end());
}

}  // namespace api
}  // namespace crout
