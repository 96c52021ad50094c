// SPDX-License-Identifier: Apache-2.0

// Output of a GPU test program before its first test.
#ifndef CROUT_TESTS_GPU_ANNOUNCEMENT_H_
#define CROUT_TESTS_GPU_ANNOUNCEMENT_H_

#include <functional>
#include <string>

#include "gtest/gtest.h"

namespace crout {

// Prints one line for the test driver and records the head of the result file. The driver needs the
// line because a skipped suite has the same exit code as a passed one.
class Announcement : public ::testing::Environment {
 public:
  // `describe` returns a description of the GPU. It is called only if there is a GPU.
  explicit Announcement(std::function<std::string()> describe);

  void SetUp() override;

 private:
  std::function<std::string()> describe_;
};

}  // namespace crout

#endif  // CROUT_TESTS_GPU_ANNOUNCEMENT_H_
