// SPDX-License-Identifier: Apache-2.0

// The context of one attempt of a call, and its cancellation.
#ifndef CROUT_CLIENT_CPP_CALL_SCOPE_H_
#define CROUT_CLIENT_CPP_CALL_SCOPE_H_

#include <grpcpp/client_context.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "crout/client_options.h"

namespace crout {
inline namespace api {
namespace internal {

// A context with the tenant, priority, token, deadline and trace context of a call. It is
// registered with the caller's Cancellation until Close().
class CallScope {
 public:
  CallScope(const ClientOptions& client, const CallOptions& call, absl::Time deadline);
  ~CallScope() { Close(); }
  CallScope(const CallScope&) = delete;  // The context's address is registered.
  CallScope& operator=(const CallScope&) = delete;

  grpc::ClientContext* context() { return context_.get(); }

  // Returns DEADLINE_EXCEEDED if the deadline has passed, and CANCELLED if the call was cancelled.
  // For use before the call starts.
  absl::Status Check() const;

  // Destroys the context, if it still exists.
  void Close();

 private:
  Cancellation* const cancellation_;
  const absl::Time deadline_;
  std::unique_ptr<grpc::ClientContext> context_;
};

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_CALL_SCOPE_H_
