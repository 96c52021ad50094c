// SPDX-License-Identifier: Apache-2.0

// Hides the ports of Open MPI from the network.
#ifndef CROUT_RANK_NETWORK_H_
#define CROUT_RANK_NETWORK_H_

namespace crout::rank {

// Moves this process, which must have one thread, to a separate network that has only the
// loopback interface. Returns false if the system forbids it; the process then remains in its
// network. Unix sockets are reachable from both networks.
bool LeaveNetwork();

}  // namespace crout::rank

#endif  // CROUT_RANK_NETWORK_H_
