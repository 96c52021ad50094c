// SPDX-License-Identifier: Apache-2.0

#include "server/replicas/lease.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/util/strings.h"
#include "server/engine/cache/handle.h"

namespace crout {
namespace {

constexpr absl::string_view kFormat = "crout-lease-1";
constexpr std::array<absl::string_view, 3> kStates = {"held", "released", "closed"};
constexpr size_t kFolderCharacters = 13;

}  // namespace

std::string EncodeLease(const Lease& lease) {
  return absl::StrCat(kFormat, " ", lease.epoch, " ", lease.owner, " ", lease.process, " ",
                      lease.counter, " ", kStates[static_cast<size_t>(lease.state)]);
}

absl::StatusOr<Lease> DecodeLease(std::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(ToAbsl(text), ' ');
  Lease lease;
  const auto state = words.size() == 6 ? std::ranges::find(kStates, words[5]) : kStates.end();
  if (state == kStates.end() || words[0] != kFormat || !absl::SimpleAtoi(words[1], &lease.epoch) ||
      lease.epoch < 1 || lease.epoch == std::numeric_limits<int64_t>::max() ||
      !absl::SimpleAtoi(words[4], &lease.counter)) {
    return absl::DataLossError(
        "an object below leases/ is no lease. Remove it, or use another prefix for the store");
  }
  lease.owner = std::string(words[2]);
  lease.process = std::string(words[3]);
  lease.state = static_cast<LeaseState>(state - kStates.begin());
  if (!IsReplicaName(lease.owner) || !Handle::Parse(lease.process)) {
    return absl::DataLossError(
        "a lease of the store has no valid owner. Remove it, or use another prefix for the store");
  }
  return lease;
}

bool IsReplicaName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxReplicaName && std::ranges::all_of(name, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
  });
}

std::string RandomFolderName() { return Handle::Random().ToString().substr(0, kFolderCharacters); }

bool IsFolderName(std::string_view name) {
  return name.size() == kFolderCharacters && std::ranges::all_of(name, [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c)) || ('2' <= c && c <= '7');
         });
}

}  // namespace crout
