// SPDX-License-Identifier: Apache-2.0

// Audit log: one line for each call that creates, replaces or releases factors.
#ifndef CROUT_SERVER_RPC_AUDIT_H_
#define CROUT_SERVER_RPC_AUDIT_H_

#include "server/rpc/observe.h"

namespace crout {

// Logs the event "audit" for a finished call, whatever the options of CallLog are. The line
// contains the caller, the method, the byte counts and the result. It contains no payload, and only
// the first characters of a handle. Does nothing if the call cannot change factors or its caller is
// not authenticated.
void Audit(const ObservedCall& call);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_AUDIT_H_
