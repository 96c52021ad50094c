// SPDX-License-Identifier: Apache-2.0

// Text form of a pattern's digest, as in the wire contract.
#ifndef CROUT_KERNELS_SPARSE_PATTERN_TEXT_H_
#define CROUT_KERNELS_SPARSE_PATTERN_TEXT_H_

#include <string>

#include "kernels/sparse/analysis.h"

namespace crout {

// First half of `key` as 16 lower-case hexadecimal digits. PatternDigest() is a sum over the
// positions of A, so clients can compute it from entries in any order.
std::string PatternText(const PatternKey& key);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_PATTERN_TEXT_H_
