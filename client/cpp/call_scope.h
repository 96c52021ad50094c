// SPDX-License-Identifier: Apache-2.0

// The context of one attempt of a call, and its cancellation.
#ifndef CROUT_CLIENT_CPP_CALL_SCOPE_H_
#define CROUT_CLIENT_CPP_CALL_SCOPE_H_

#include <grpcpp/client_context.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/replicas.h"
#include "crout/client_options.h"

namespace crout {
inline namespace api {
namespace internal {

// A context with the tenant, priority, token, deadline, trace context and replica of a call. It is
// registered with the caller's Cancellation until Close().
class CallScope {
 public:
  // `handle`: the handle in the request; empty if there is none. `replicas` outlives the scope; the
  // end of the call sets the replica of the handle.
  CallScope(const ClientOptions& client, const CallOptions& call, absl::Time deadline,
            Replicas* replicas, std::string handle);
  ~CallScope() { Close(); }
  CallScope(const CallScope&) = delete;  // The context's address is registered.
  CallScope& operator=(const CallScope&) = delete;

  grpc::ClientContext* context() { return context_.get(); }

  // Call when the reply names the factor of the call.
  void SetHandle(const std::string& handle) { handle_ = handle; }

  // Returns DEADLINE_EXCEEDED if the deadline has passed, and CANCELLED if the call was cancelled.
  // For use before the call starts.
  absl::Status Check() const;

  // Returns true if the caller has cancelled the call.
  bool cancelled() const;

  // Replaces the CANCELLED of a server that stops by UNAVAILABLE. `ended` is the status of the
  // call.
  absl::Status Explain(absl::Status ended) const;

  // Destroys the context, if it still exists. The call has ended or was not started.
  void Close();

 private:
  Cancellation* const cancellation_;
  const absl::Time deadline_;
  Replicas* const replicas_;
  std::string handle_;
  std::unique_ptr<grpc::ClientContext> context_;
};

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_CALL_SCOPE_H_
