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

// For what can be seen only before a time is over that nobody but the machine's clock moves: makes
// attempts until one has seen it. An attempt that has not tells nothing where it took `time`, for
// the machine may have stood still; where it did not, it has failed. False then, and where none has
// seen it within kPatience.
bool SeenWithin(absl::Duration time, const std::function<bool()>& attempt);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_PATIENCE_H_
