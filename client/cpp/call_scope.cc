#include "client/cpp/call_scope.h"

namespace crout::client {

CallScope::CallScope(const ClientOptions& client, const CallOptions& call, absl::Time deadline)
    : cancellation_(call.cancellation), context_(std::make_unique<grpc::ClientContext>()) {
  if (!client.tenant.empty()) context_->AddMetadata("crout-tenant", client.tenant);
  if (!call.traceparent.empty()) context_->AddMetadata("traceparent", call.traceparent);
  if (deadline != absl::InfiniteFuture()) context_->set_deadline(absl::ToChronoTime(deadline));
  if (cancellation_ != nullptr) cancellation_->Attach(context_.get());
}

void CallScope::Close() {
  if (context_ == nullptr) return;
  if (cancellation_ != nullptr) cancellation_->Detach(context_.get());
  context_.reset();
}

}  // namespace crout::client
