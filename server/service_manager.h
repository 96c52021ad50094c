// SPDX-License-Identifier: Apache-2.0

// Notifies the service manager that started the daemon, with the protocol of systemd's
// sd_notify(3).
#ifndef CROUT_SERVER_SERVICE_MANAGER_H_
#define CROUT_SERVER_SERVICE_MANAGER_H_

#include "absl/strings/string_view.h"

namespace crout {

// Sends `state`, lines such as "READY=1" or "STOPPING=1", to the datagram socket named by
// $NOTIFY_SOCKET: a path, or an abstract name after "@". Does nothing if the variable is not set.
// Drops the message if it cannot be sent. Does not block. Returns true if the message was sent.
bool NotifyServiceManager(absl::string_view state);

}  // namespace crout

#endif  // CROUT_SERVER_SERVICE_MANAGER_H_
