// The digest of a pattern as the wire contract has it.
#ifndef CROUT_KERNELS_SPARSE_PATTERN_TEXT_H_
#define CROUT_KERNELS_SPARSE_PATTERN_TEXT_H_

#include <string>

#include "kernels/sparse/analysis.h"

namespace crout {

// The first half of `key` as 16 lower-case hexadecimal digits. PatternDigest() sums it over the
// positions of A, so that clients compute the same digest from entries in any order.
std::string PatternText(const PatternKey& key);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_PATTERN_TEXT_H_
