// SPDX-License-Identifier: Apache-2.0

// Interface to the processes of a group, which run on this machine or on others.
#ifndef CROUT_SERVER_GROUPS_RANK_LAUNCHER_H_
#define CROUT_SERVER_GROUPS_RANK_LAUNCHER_H_

#include <string>

#include "absl/status/status.h"

namespace crout {

// Starts and ends the ranks of one formation after the other. Used by one thread.
class RankLauncher {
 public:
  virtual ~RankLauncher() = default;

  // Returns what Start() still waits for; "" if it may be called.
  virtual std::string Missing() = 0;
  // Starts the ranks, which join with this token.
  virtual absl::Status Start(const std::string& token) = 0;
  // Returns why the formation must end; "" if it may go on.
  virtual std::string Failure() = 0;
  // Returns the end of the output of the ranks.
  virtual std::string Output() const = 0;
  // The ranks have joined.
  virtual void Formed() = 0;
  // Kills the processes that Start() has started. Returns when they have ended, or cannot be
  // reached.
  virtual void End() = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_RANK_LAUNCHER_H_
