// SPDX-License-Identifier: Apache-2.0

// The machines whose agents (crout-rank --join) run the ranks of a group.
#ifndef CROUT_SERVER_GROUPS_MACHINES_H_
#define CROUT_SERVER_GROUPS_MACHINES_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"
#include "server/groups/rank_launcher.h"
#include "server/groups/rank_listener.h"

namespace crout {

// A machine leaves when its agent's stream ends, or has sent nothing for kSilence. The functions of
// RankLauncher are for one thread, and AgentEvents for the others.
class Machines final : public RankLauncher, public AgentEvents {
 public:
  static constexpr std::chrono::seconds kSilence{5};

  // `group`: the name that agents give. `ranks`: number that all machines have together.
  Machines(std::string group, int ranks) : group_(std::move(group)), ranks_(ranks) {}

  std::string Missing() override;
  absl::Status Start(const std::string& token) override;
  std::string Failure() override;
  std::string Output() const override;
  void Formed() override {}
  // Waits for kEndWait at most, and not for machines that are silent for kSilence meanwhile.
  // Machines that do not answer leave, and their agents then kill the ranks by themselves.
  void End() override;

  absl::Status Joined(std::shared_ptr<AgentStream> stream,
                      const rank::v1::AgentHello& hello) override;
  void Received(const AgentStream& stream, const rank::v1::AgentMessage& message) override;
  void Left(const AgentStream& stream) override;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kEndWait{3};
  static constexpr std::chrono::milliseconds kEndPoll{100};

  struct Machine {
    std::shared_ptr<AgentStream> stream;
    std::string host;
    int ranks = 0;
    Clock::time_point last_heard;
    bool runs = false;  // has processes of the formation
  };

  int RanksOfAll() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes machine `i`.
  void Remove(size_t i, const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveSilent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AnyRuns() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends the request of mpirun to the machine that it is for.
  void Relay(const Machine& from, const rank::v1::Launch& launch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string group_;
  const int ranks_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Machine> machines_ ABSL_GUARDED_BY(mutex_);
  std::string failure_ ABSL_GUARDED_BY(mutex_);  // why the formation must end
  std::string output_ ABSL_GUARDED_BY(mutex_);   // the output of its processes
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_MACHINES_H_
