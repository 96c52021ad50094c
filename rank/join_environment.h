// SPDX-License-Identifier: Apache-2.0

// The environment of the ranks that the daemon starts.
#ifndef CROUT_RANK_JOIN_ENVIRONMENT_H_
#define CROUT_RANK_JOIN_ENVIRONMENT_H_

namespace crout::rank {

// Environment variable with the secret of the formation. A command line would show it to all users.
inline constexpr char kTokenVariable[] = "CROUT_RANK_TOKEN";

}  // namespace crout::rank

#endif  // CROUT_RANK_JOIN_ENVIRONMENT_H_
