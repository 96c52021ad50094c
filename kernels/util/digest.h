// SPDX-License-Identifier: Apache-2.0

// Digests of patterns and entries, as defined by the wire contract.
#ifndef CROUT_KERNELS_UTIL_DIGEST_H_
#define CROUT_KERNELS_UTIL_DIGEST_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace crout {

// Returns the output of splitmix64 in state x: m(x) in the definitions of SparseInfo.pattern_digest
// and SeriesResult.entry_digest.
inline uint64_t SplitMix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Returns 16 lower-case hexadecimal digits.
inline std::string DigestText(uint64_t digest) {
  return absl::StrCat(absl::Hex(digest, absl::kZeroPad16));
}

// Returns true if `text` has the form of DigestText.
inline bool IsDigestText(std::string_view text) {
  const auto is_digit = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); };
  return text.size() == 16 && std::ranges::all_of(text, is_digit);
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_DIGEST_H_
