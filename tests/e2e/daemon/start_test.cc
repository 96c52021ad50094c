// SPDX-License-Identifier: Apache-2.0

// Tests the start of croutd on a system that can start only few threads, including those of gRPC
// and OpenMP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/sanitizers.h"
#include "tests/e2e/harness/process.h"

namespace crout::e2e::start_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(StartTest, WithTooFewThreadsEndsWithAMessage) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers' runtimes do not let others in before them";
  if (access(CROUT_FEW_THREADS, R_OK) != 0) GTEST_SKIP() << "not installed: " CROUT_FEW_THREADS;
  constexpr int kMaxThreads = 200;
  bool ready = false;
  int threads = 0;
  for (; threads < kMaxThreads && !ready && !HasFailure(); ++threads) {
    SCOPED_TRACE(absl::StrCat(threads, " threads"));
    Process croutd({"/usr/bin/env", absl::StrCat("LD_PRELOAD=", CROUT_FEW_THREADS),
                    absl::StrCat("CROUT_TEST_THREADS=", threads), ProgramPath("croutd"),
                    "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--devices=host",
                    "--host-threads=2", "--drain-grace=0s"});
    ASSERT_TRUE(testing::Eventually([&] {
      ready = absl::StrContains(croutd.Output(), "croutd ready");
      return ready || !croutd.running();
    })) << "it neither serves nor ends";
    if (ready) {
      croutd.Signal(SIGTERM);
      EXPECT_THAT(croutd.Wait(), Optional(0));
    } else {
      EXPECT_THAT(croutd.Wait(), Optional(1));
      EXPECT_THAT(croutd.Errors(), HasSubstr("cannot start a thread"));
    }
  }
  EXPECT_TRUE(ready);
  EXPECT_GT(threads, 20);
}

}  // namespace
}  // namespace crout::e2e::start_test
