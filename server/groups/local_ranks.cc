// SPDX-License-Identifier: Apache-2.0

#include "server/groups/local_ranks.h"

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "server/observability/log/log.h"

namespace crout {

absl::Status LocalRanks::Start(const std::string& token) {
  start_.token = token;
  CROUT_ASSIGN_OR_RETURN(processes_, RankProcesses::Start(folder_, start_));
  return absl::OkStatus();
}

std::string LocalRanks::Failure() {
  if (!processes_->ended()) return {};
  return absl::StrCat("the ranks ended: ", folder_.LogTail());
}

void LocalRanks::Formed() {
  if (processes_->HasOwnNetwork()) return;
  Log(LogLevel::kWarn, "group_exposed",
      {{"device", device_},
       {"reason",
        "the system permits no network namespace, so mpirun accepts connections on all "
        "interfaces. Block them with a firewall"}});
}

}  // namespace crout
