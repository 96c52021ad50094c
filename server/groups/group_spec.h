// SPDX-License-Identifier: Apache-2.0

// The setting --group.
#ifndef CROUT_SERVER_GROUPS_GROUP_SPEC_H_
#define CROUT_SERVER_GROUPS_GROUP_SPEC_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace crout {

// A group of `ranks` processes: "NAME=host:RANKS" on the cores of this machine, "NAME=cuda:0,1"
// with one of these GPUs each, "NAME=join:RANKS@ADDRESS" on machines that join at ADDRESS.
struct GroupSpec {
  static constexpr int kMostRanks = 1024;

  std::string name;  // its device is "group:NAME"
  int ranks = 1;
  std::string join = {};  // HOST:PORT at which machines join; "": the ranks run on this machine
  std::vector<int> gpus = {};  // ordinal of each rank's GPU; empty: the ranks use none
};

// INVALID_ARGUMENT with the expected form.
absl::StatusOr<GroupSpec> ParseGroup(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_GROUP_SPEC_H_
