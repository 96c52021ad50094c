// SPDX-License-Identifier: Apache-2.0

// Tests that an idle daemon returns the memory that it used for work to the system.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/util/sanitizers.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::memory_return_test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kOrder = 1500;  // 17 MiB
constexpr int kFactors = 8;

// Makes factors, then releases them one by one. Returns the resident memory while they existed.
int64_t WorkAndRelease(Daemon& daemon) {
  const auto client = daemon.NewClient();
  const crout::testing::HostMatrix a = crout::testing::RandomMatrix(kOrder, kOrder, 1);
  std::vector<std::string> handles;
  for (int i = 0; i < kFactors; ++i) {
    const auto factor =
        client->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), kOrder, kOrder), {}, {});
    EXPECT_OK(factor);
    if (factor.ok()) handles.push_back(factor->handle);
  }
  const int64_t resident = StatusBytes(daemon.process().pid(), "VmRSS");
  for (const std::string& handle : handles) {
    EXPECT_OK(client->Release(handle));
  }
  return resident;
}

TEST(MemoryReturnTest, ReleasedMemoryIsReturnedToTheSystem) {
  if (crout::kSanitized) GTEST_SKIP() << "freed memory stays resident";
  Daemon daemon({"--devices=host", "--return-memory-after=100ms"});
  const int64_t before = StatusBytes(daemon.process().pid(), "VmRSS");
  for (int round = 0; round < 2; ++round) {  // memory must not accumulate
    ASSERT_GT(WorkAndRelease(daemon), before + 128 * kMiB) << "the factors are resident";
    // The allowance is for stacks of threads and for buffers of gRPC and OpenBLAS.
    EXPECT_TRUE(Eventually([&] {
      return StatusBytes(daemon.process().pid(), "VmRSS") < before + 48 * kMiB;
    })) << StatusBytes(daemon.process().pid(), "VmRSS") / kMiB
        << " MiB are resident, " << before / kMiB << " MiB were";
  }
}

}  // namespace
}  // namespace crout::e2e::memory_return_test
