// SPDX-License-Identifier: Apache-2.0

// The lease of a folder of a shared store, as the text of an object.
#ifndef CROUT_SERVER_REPLICAS_LEASE_H_
#define CROUT_SERVER_REPLICAS_LEASE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace crout {

enum class LeaseState : uint8_t {
  kHeld,
  kReleased,  // each daemon may adopt the folder at once
  kClosed,    // final: the folder has no factors, and no daemon adopts it
};

struct Lease {
  int64_t epoch = 1;    // grows with each adoption
  std::string owner;    // name of the daemon
  std::string process;  // random, of the daemon's process
  int64_t counter = 0;  // grows with each write of the process
  LeaseState state = LeaseState::kHeld;

  friend bool operator==(const Lease&, const Lease&) = default;
};

// Longest text of a lease.
inline constexpr size_t kMaxLeaseBytes = 256;

std::string EncodeLease(const Lease& lease);
// Decodes a hostile text. DATA_LOSS if it is no lease.
absl::StatusOr<Lease> DecodeLease(std::string_view text);

// True for 1 to kMaxReplicaName letters, digits and hyphens.
inline constexpr size_t kMaxReplicaName = 63;
bool IsReplicaName(std::string_view name);

// Folders have random names of 13 characters (65 bits).
std::string RandomFolderName();
bool IsFolderName(std::string_view name);

}  // namespace crout

#endif  // CROUT_SERVER_REPLICAS_LEASE_H_
