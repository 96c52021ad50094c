// SPDX-License-Identifier: Apache-2.0

// Who changed what: a line in the log for each call that makes, replaces or releases factors.
#ifndef CROUT_SERVER_RPC_AUDIT_H_
#define CROUT_SERVER_RPC_AUDIT_H_

#include "server/rpc/observe.h"

namespace crout {

// Logs the event "audit" of a call that has ended, whatever CallLog makes of it, if it is one of
// those and its caller is known: who, what, bytes and result. Nothing of a payload, and of a handle
// its first characters.
void Audit(const ObservedCall& call);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_AUDIT_H_
