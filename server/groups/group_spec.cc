// SPDX-License-Identifier: Apache-2.0

#include "server/groups/group_spec.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/util/strings.h"
#include "server/net/listen_address.h"

namespace crout {

namespace {

bool ParseRanks(absl::string_view text, GroupSpec* spec) {
  return absl::SimpleAtoi(text, &spec->ranks) && spec->ranks >= 1 &&
         spec->ranks <= GroupSpec::kMostRanks;
}

// Parses different ordinals, separated by commas.
bool ParseGpus(absl::string_view text, GroupSpec* spec) {
  for (const absl::string_view ordinal : absl::StrSplit(text, ',')) {
    int gpu = 0;
    if (!absl::SimpleAtoi(ordinal, &gpu) || gpu < 0 ||
        std::ranges::find(spec->gpus, gpu) != spec->gpus.end()) {
      return false;
    }
    spec->gpus.push_back(gpu);
  }
  spec->ranks = static_cast<int>(spec->gpus.size());
  return spec->ranks <= GroupSpec::kMostRanks;
}

bool ParseJoin(absl::string_view text, GroupSpec* spec) {
  const size_t at = text.find('@');
  if (at == absl::string_view::npos) return false;
  spec->join = std::string(text.substr(at + 1));
  return ParseHostPort(spec->join).ok() && ParseRanks(text.substr(0, at), spec);
}

bool ParseKind(absl::string_view text, GroupSpec* spec) {
  if (absl::ConsumePrefix(&text, "join:")) return ParseJoin(text, spec);
  if (absl::ConsumePrefix(&text, "cuda:")) return ParseGpus(text, spec);
  return absl::ConsumePrefix(&text, "host:") && ParseRanks(text, spec);
}

}  // namespace

absl::StatusOr<GroupSpec> ParseGroup(std::string_view text) {
  constexpr size_t kLongestName = 32;
  const absl::string_view whole = ToAbsl(text);
  const size_t equals = whole.find('=');
  const absl::string_view name = whole.substr(0, equals);
  const bool named = equals != absl::string_view::npos && !name.empty() &&
                     name.size() <= kLongestName &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
                     });
  GroupSpec spec;
  if (!named || !ParseKind(whole.substr(equals + 1), &spec)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", whole,
                     "' is not NAME=host:RANKS, NAME=cuda:N,N,... or NAME=join:RANKS@HOST:PORT, "
                     "with a NAME of up to ",
                     kLongestName, " letters a-z, digits and hyphens, 1 to ", GroupSpec::kMostRanks,
                     " RANKS and different GPUs N, such as big=host:4 or big=cuda:0,1"));
  }
  spec.name = std::string(name);
  return spec;
}

}  // namespace crout
