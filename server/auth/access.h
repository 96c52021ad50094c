// SPDX-License-Identifier: Apache-2.0

// Access to the operators' interfaces: health, reflection, metrics and the status page.
#ifndef CROUT_SERVER_AUTH_ACCESS_H_
#define CROUT_SERVER_AUTH_ACCESS_H_

#include <cstdint>

namespace crout {

enum class Access : uint8_t {
  kOff,    // disabled
  kOpen,   // any client that can connect
  kRoles,  // identities with a role
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_ACCESS_H_
