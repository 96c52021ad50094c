// SPDX-License-Identifier: Apache-2.0

// The setting --group.
#ifndef CROUT_SERVER_GROUPS_GROUP_SPEC_H_
#define CROUT_SERVER_GROUPS_GROUP_SPEC_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace crout {

// A group of `ranks` processes on the cores of this machine: "NAME=host:RANKS".
struct GroupSpec {
  static constexpr int kMostRanks = 1024;

  std::string name;  // its device is "group:NAME"
  int ranks = 1;
};

// INVALID_ARGUMENT with the expected form.
absl::StatusOr<GroupSpec> ParseGroup(std::string_view text);

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_GROUP_SPEC_H_
