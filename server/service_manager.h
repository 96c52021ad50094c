// SPDX-License-Identifier: Apache-2.0

// What the daemon tells the service manager that started it, if one did: systemd's sd_notify(3).
#ifndef CROUT_SERVER_SERVICE_MANAGER_H_
#define CROUT_SERVER_SERVICE_MANAGER_H_

#include "absl/strings/string_view.h"

namespace crout {

// Sends `state`, lines such as "READY=1" or "STOPPING=1", to the datagram socket that
// $NOTIFY_SOCKET names: a path, or, after "@", an abstract name. Nothing happens without the
// variable; what cannot be sent is dropped. Does not block. Returns whether it was sent.
bool NotifyServiceManager(absl::string_view state);

}  // namespace crout

#endif  // CROUT_SERVER_SERVICE_MANAGER_H_
