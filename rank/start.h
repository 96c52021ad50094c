// SPDX-License-Identifier: Apache-2.0

// Starts all ranks of a group on this machine.
#ifndef CROUT_RANK_START_H_
#define CROUT_RANK_START_H_

#include <string>

namespace crout::rank {

// Replaces this process by Open MPI's mpirun, which starts `ranks` processes `program` that join
// the daemon at `address`. They end when mpirun ends. Returns only if mpirun cannot be executed;
// errno is then set.
void Start(int ranks, const std::string& program, const std::string& address);

}  // namespace crout::rank

#endif  // CROUT_RANK_START_H_
