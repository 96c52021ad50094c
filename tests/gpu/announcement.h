// What a program of GPU tests says before the first of them.
#ifndef CROUT_TESTS_GPU_ANNOUNCEMENT_H_
#define CROUT_TESTS_GPU_ANNOUNCEMENT_H_

#include <functional>
#include <string>

#include "gtest/gtest.h"

namespace crout {

// One line for the test driver, which cannot tell a skipped suite from a passed one by its code,
// and the head of the result file.
class Announcement : public ::testing::Environment {
 public:
  // `describe` says which GPU it is, and is called where there is one.
  explicit Announcement(std::function<std::string()> describe);

  void SetUp() override;

 private:
  std::function<std::string()> describe_;
};

}  // namespace crout

#endif  // CROUT_TESTS_GPU_ANNOUNCEMENT_H_
