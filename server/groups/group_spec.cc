// SPDX-License-Identifier: Apache-2.0

#include "server/groups/group_spec.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/util/strings.h"
#include "server/net/listen_address.h"

namespace crout {

absl::StatusOr<GroupSpec> ParseGroup(std::string_view text) {
  constexpr size_t kLongestName = 32;
  absl::string_view rest = ToAbsl(text);
  const size_t equals = rest.find('=');
  const absl::string_view name = rest.substr(0, equals);
  const bool named = equals != absl::string_view::npos && !name.empty() &&
                     name.size() <= kLongestName &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
                     });
  GroupSpec spec;
  if (named) rest.remove_prefix(equals + 1);
  bool valid = named;
  if (absl::ConsumePrefix(&rest, "join:")) {
    const size_t at = rest.find('@');
    valid = valid && at != absl::string_view::npos;
    if (valid) spec.join = std::string(rest.substr(at + 1));
    valid = valid && ParseHostPort(spec.join).ok();
    rest = rest.substr(0, at);
  } else {
    valid = valid && absl::ConsumePrefix(&rest, "host:");
  }
  if (!valid || !absl::SimpleAtoi(rest, &spec.ranks) || spec.ranks < 1 ||
      spec.ranks > GroupSpec::kMostRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", ToAbsl(text),
                     "' is not NAME=host:RANKS or NAME=join:RANKS@HOST:PORT, "
                     "with a NAME of up to ",
                     kLongestName, " letters a-z, digits and hyphens, and 1 to ",
                     GroupSpec::kMostRanks, " RANKS, such as big=host:4"));
  }
  spec.name = std::string(name);
  return spec;
}

}  // namespace crout
