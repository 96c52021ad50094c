// Which device the cases of a test program are about, where they hold on every device.
#ifndef CROUT_TESTS_SUPPORT_DEVICE_UNDER_TEST_H_
#define CROUT_TESTS_SUPPORT_DEVICE_UNDER_TEST_H_

#include "kernels/device.h"

namespace crout::testing {

// One source of each such program defines it: the same device in every call. Null where the machine
// has none: tests skip.
Device* DeviceUnderTest();

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_DEVICE_UNDER_TEST_H_
