// How long tests wait for what must happen.
#ifndef CROUT_TESTS_SUPPORT_PATIENCE_H_
#define CROUT_TESTS_SUPPORT_PATIENCE_H_

#include <functional>

#include "absl/time/time.h"

namespace crout::testing {

// Far beyond what anything takes, on a busy machine too: only a test that fails waits so long.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// Waits until `condition`, which is asked again and again, holds; false if it does not within
// kPatience.
bool Eventually(const std::function<bool()>& condition);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_PATIENCE_H_
