// SPDX-License-Identifier: Apache-2.0

// The ranks that the daemon starts on its machine.
#ifndef CROUT_SERVER_GROUPS_LOCAL_RANKS_H_
#define CROUT_SERVER_GROUPS_LOCAL_RANKS_H_

#include <memory>
#include <string>
#include <utility>

#include "server/groups/rank_folder.h"
#include "server/groups/rank_launcher.h"
#include "server/groups/rank_processes.h"

namespace crout {

class LocalRanks final : public RankLauncher {
 public:
  // `device`: for the log. The token in `start` is replaced.
  LocalRanks(std::string device, RankFolder folder, RankStart start)
      : device_(std::move(device)), folder_(std::move(folder)), start_(std::move(start)) {}

  // Path of the socket at which the ranks join.
  std::string socket() const { return folder_.socket(); }

  std::string Missing() override { return {}; }
  absl::Status Start(const std::string& token) override;
  std::string Failure() override;
  std::string Output() const override { return folder_.LogTail(); }
  void Formed() override;
  void End() override { processes_.reset(); }

 private:
  const std::string device_;
  const RankFolder folder_;
  RankStart start_;
  std::unique_ptr<RankProcesses> processes_;
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_LOCAL_RANKS_H_
