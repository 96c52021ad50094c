// SPDX-License-Identifier: Apache-2.0

// Writes gzip data independently of the product's code.
#ifndef CROUT_TESTS_SUPPORT_GZIP_H_
#define CROUT_TESTS_SUPPORT_GZIP_H_

#include <string>
#include <string_view>

namespace crout::testing {

// Returns `text` as one gzip member, compressed at `level` (0 to 9).
std::string Gzip(std::string_view text, int level = 6);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_GZIP_H_
