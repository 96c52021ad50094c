// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace crout::cgroup_test {
namespace {

namespace fs = std::filesystem;
using ::testing::Optional;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Creates a directory with the files that the code under test reads.
class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest() {
    root_ = (fs::path(::testing::TempDir()) / "crout-cgroup-XXXXXX").string();
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
  }
  ~CgroupTest() override { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const fs::path path = fs::path(root_) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::optional<uint64_t> Limit() { return host::CgroupMemoryLimit(root_); }
  std::optional<double> Quota() { return host::CgroupCpuQuota(root_); }

  std::string root_;
};

TEST_F(CgroupTest, ReturnsNoLimitWithoutGroupsOrLimits) {
  EXPECT_EQ(Limit(), std::nullopt);
  Write("proc/self/cgroup", "0::/system.slice/croutd.service");
  EXPECT_EQ(Limit(), std::nullopt);
  Write("sys/fs/cgroup/system.slice/croutd.service/memory.max", "max");
  Write("sys/fs/cgroup/system.slice/memory.max", "max");
  EXPECT_EQ(Limit(), std::nullopt);
}

TEST_F(CgroupTest, ReturnsTheLimitOfItsGroup) {
  Write("proc/self/cgroup", "0::/system.slice/croutd.service");
  Write("sys/fs/cgroup/system.slice/croutd.service/memory.max", std::to_string(512 * kMiB));
  EXPECT_THAT(Limit(), Optional(512 * kMiB));
}

TEST_F(CgroupTest, ReturnsTheLeastLimitOfAllAncestors) {
  Write("proc/self/cgroup", "0::/a/b/c/d");
  Write("sys/fs/cgroup/a/b/c/d/memory.max", "max");
  Write("sys/fs/cgroup/a/b/c/memory.max", std::to_string(900 * kMiB));
  Write("sys/fs/cgroup/a/b/memory.max", std::to_string(300 * kMiB));
  Write("sys/fs/cgroup/a/memory.max", std::to_string(700 * kMiB));
  Write("sys/fs/cgroup/other/memory.max", std::to_string(kMiB));
  EXPECT_THAT(Limit(), Optional(300 * kMiB));
  // The limit of a container, seen from inside.
  Write("sys/fs/cgroup/memory.max", std::to_string(200 * kMiB));
  EXPECT_THAT(Limit(), Optional(200 * kMiB));
}

TEST_F(CgroupTest, TreatsHighLikeMax) {
  Write("proc/self/cgroup", "0::/a");
  Write("sys/fs/cgroup/a/memory.max", std::to_string(512 * kMiB));
  Write("sys/fs/cgroup/a/memory.high", std::to_string(400 * kMiB));
  EXPECT_THAT(Limit(), Optional(400 * kMiB));
}

// In a container, the mounted hierarchy begins at the container's group, but the path is relative
// to the host's root.
TEST_F(CgroupTest, UsesTheRootIfThePathIsNotInTheMount) {
  Write("proc/self/cgroup", "0::/docker/0123");
  Write("sys/fs/cgroup/memory.max", std::to_string(256 * kMiB));
  EXPECT_THAT(Limit(), Optional(256 * kMiB));
  Write("proc/self/cgroup", "0::/../../elsewhere");
  EXPECT_THAT(Limit(), Optional(256 * kMiB));
}

TEST_F(CgroupTest, SupportsVersionOneAndBothVersions) {
  Write("proc/self/cgroup", "12:pids:/a\n7:cpu,memory:/a/b\n0::/c");
  Write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712");
  Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", std::to_string(600 * kMiB));
  EXPECT_THAT(Limit(), Optional(600 * kMiB));
  Write("sys/fs/cgroup/unified/c/memory.max", std::to_string(500 * kMiB));
  EXPECT_THAT(Limit(), Optional(500 * kMiB));
}

TEST_F(CgroupTest, IgnoresMalformedLimits) {
  Write("proc/self/cgroup", "nonsense\n0::/a\n:::\n");
  Write("sys/fs/cgroup/a/memory.max", "-5");
  EXPECT_EQ(Limit(), std::nullopt);
}

TEST_F(CgroupTest, ReturnsTheLeastCpuQuota) {
  EXPECT_EQ(Quota(), std::nullopt);
  Write("proc/self/cgroup", "0::/a/b");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000");
  EXPECT_EQ(Quota(), std::nullopt);
  Write("sys/fs/cgroup/a/cpu.max", "250000 100000");
  EXPECT_THAT(Quota(), Optional(2.5));
  Write("sys/fs/cgroup/a/b/cpu.max", "50000 100000");
  EXPECT_THAT(Quota(), Optional(0.5));
}

TEST_F(CgroupTest, ReturnsTheCpuQuotaOfVersionOne) {
  Write("proc/self/cgroup", "3:cpu,cpuacct:/a");
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1");
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Quota(), std::nullopt);
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_THAT(Quota(), Optional(3.0));
}

TEST_F(CgroupTest, IgnoresMalformedQuotas) {
  Write("proc/self/cgroup", "0::/a");
  for (const char* text : {"", "fast 100000", "100000", "100000 0", "0 100000", "-5 100000"}) {
    Write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(Quota(), std::nullopt) << text;
  }
}

TEST(AvailableCoresTest, AreWithinTheQuota) {
  EXPECT_GE(host::AvailableCores(), 1);
  EXPECT_LE(host::AvailableCores(), std::ceil(host::CgroupCpuQuota().value_or(1e9)));
}

TEST(SystemMemoryTest, IsWithinTheMachineAndTheGroup) {
  const auto machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  EXPECT_GT(host::SystemMemoryBytes(), 0u);
  EXPECT_LE(host::SystemMemoryBytes(), machine);
  EXPECT_LE(host::SystemMemoryBytes(), host::CgroupMemoryLimit().value_or(machine));
}

}  // namespace
}  // namespace crout::cgroup_test
