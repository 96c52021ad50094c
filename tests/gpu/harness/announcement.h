// SPDX-License-Identifier: Apache-2.0

// Describes the GPU in the output of a test program, before its first test.
#ifndef CROUT_TESTS_GPU_HARNESS_ANNOUNCEMENT_H_
#define CROUT_TESTS_GPU_HARNESS_ANNOUNCEMENT_H_

#include <functional>
#include <string>

#include "gtest/gtest.h"

namespace crout {

// Prints the GPU's description, or that all tests are skipped because there is no GPU. Test drivers
// need this line because skipped and passed programs have the same exit code. If there is a GPU,
// records "device", "version" and "commit" as properties at the head of the result file.
class Announcement : public ::testing::Environment {
 public:
  // `describe` returns the GPU's description. It is called only if there is a GPU.
  explicit Announcement(std::function<std::string()> describe);

  void SetUp() override;

 private:
  std::function<std::string()> describe_;
};

}  // namespace crout

#endif  // CROUT_TESTS_GPU_HARNESS_ANNOUNCEMENT_H_
