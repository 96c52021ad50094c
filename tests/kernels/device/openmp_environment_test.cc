// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/openmp_environment.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace crout::openmp_environment_test {
namespace {

// NOLINTBEGIN(concurrency-mt-unsafe): the program has one thread.
TEST(OpenMpEnvironmentTest, RestartsWithPassiveWaits) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    unsetenv("OMP_WAIT_POLICY");
    setenv("CROUT_TEST_RESTARTED", "1", 1);
    std::string name = "openmp_environment_test";
    std::string filter = "--gtest_filter=OpenMpEnvironmentTest.DoesNotRestartTwice";
    char* argv[] = {name.data(), filter.data(), nullptr};
    host::UsePassiveOpenMpWaits(argv);
    _exit(99);  // The call returned: the program was not restarted.
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(OpenMpEnvironmentTest, DoesNotRestartTwice) {
  if (getenv("CROUT_TEST_RESTARTED") == nullptr) GTEST_SKIP() << "run by the test above";
  EXPECT_STREQ(getenv("OMP_WAIT_POLICY"), "passive");
  host::UsePassiveOpenMpWaits(nullptr);  // must not restart again
  char name[16] = {};
  ASSERT_EQ(prctl(PR_GET_NAME, name), 0);
  // Linux truncates the name of a thread to 15 characters. After a restart through /proc/self/exe
  // it would be "exe".
  EXPECT_STREQ(name, "openmp_environm");
}

TEST(OpenMpEnvironmentTest, KeepsAnExistingPolicy) {
  setenv("OMP_WAIT_POLICY", "active", 1);
  host::UsePassiveOpenMpWaits(nullptr);
  EXPECT_STREQ(getenv("OMP_WAIT_POLICY"), "active");
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace
}  // namespace crout::openmp_environment_test
