// SPDX-License-Identifier: Apache-2.0

// Converts std::string_view to absl::string_view, a different type if the distribution built Abseil
// as C++14.
#ifndef CROUT_KERNELS_UTIL_STRINGS_H_
#define CROUT_KERNELS_UTIL_STRINGS_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace crout {

inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_STRINGS_H_
