// SPDX-License-Identifier: Apache-2.0

// Who may use what the daemon has for operators: health, reflection, metrics.
#ifndef CROUT_SERVER_AUTH_ACCESS_H_
#define CROUT_SERVER_AUTH_ACCESS_H_

#include <cstdint>

namespace crout {

enum class Access : uint8_t {
  kOff,    // nobody: it is not there
  kOpen,   // whoever reaches it
  kRoles,  // identities with a role
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_ACCESS_H_
