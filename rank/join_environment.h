// SPDX-License-Identifier: Apache-2.0

// Names that the daemon, an agent and the ranks that they start share.
#ifndef CROUT_RANK_JOIN_ENVIRONMENT_H_
#define CROUT_RANK_JOIN_ENVIRONMENT_H_

namespace crout::rank {

// Environment variable with the secret of the formation. A command line would show it to all users.
inline constexpr char kTokenVariable[] = "CROUT_RANK_TOKEN";

// Environment variable with the ordinals of the ranks' GPUs, separated by commas. Empty: the ranks
// use none.
inline constexpr char kGpusVariable[] = "CROUT_RANK_GPUS";

// Environment variables that an agent sets for its processes: the ranks' arguments, one per line,
// which replace their command line; and the path of the socket to which kRelayOption sends.
inline constexpr char kArgumentsVariable[] = "CROUT_RANK_ARGUMENTS";
inline constexpr char kRelayVariable[] = "CROUT_RANK_RELAY";

// Descriptor of the group's shared memory in the process that starts the ranks, their parent.
// mpirun closes it in the ranks, which open it below /proc. They cannot open the daemon's
// descriptor, because a daemon with keys hides its own entry there.
inline constexpr int kMemoryDescriptor = 3;

}  // namespace crout::rank

#endif  // CROUT_RANK_JOIN_ENVIRONMENT_H_
