// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/host_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace crout::cgroup_memory_test {
namespace {

namespace fs = std::filesystem;
using ::testing::Optional;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Creates a directory with the files that the code under test reads.
class CgroupMemoryTest : public ::testing::Test {
 protected:
  CgroupMemoryTest() {
    root_ = (fs::path(::testing::TempDir()) / "crout-cgroup-XXXXXX").string();
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
  }
  ~CgroupMemoryTest() override { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const fs::path path = fs::path(root_) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::optional<uint64_t> Limit() { return host::CgroupMemoryLimit(root_); }

  std::string root_;
};

TEST_F(CgroupMemoryTest, ReturnsNoLimitWithoutGroupsOrLimits) {
  EXPECT_EQ(Limit(), std::nullopt);
  Write("proc/self/cgroup", "0::/system.slice/croutd.service");
  EXPECT_EQ(Limit(), std::nullopt);
  Write("sys/fs/cgroup/system.slice/croutd.service/memory.max", "max");
  Write("sys/fs/cgroup/system.slice/memory.max", "max");
  EXPECT_EQ(Limit(), std::nullopt);
}

TEST_F(CgroupMemoryTest, ReturnsTheLimitOfItsGroup) {
  Write("proc/self/cgroup", "0::/system.slice/croutd.service");
  Write("sys/fs/cgroup/system.slice/croutd.service/memory.max", std::to_string(512 * kMiB));
  EXPECT_THAT(Limit(), Optional(512 * kMiB));
}

TEST_F(CgroupMemoryTest, ReturnsTheLeastLimitOfAllAncestors) {
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

TEST_F(CgroupMemoryTest, TreatsHighLikeMax) {
  Write("proc/self/cgroup", "0::/a");
  Write("sys/fs/cgroup/a/memory.max", std::to_string(512 * kMiB));
  Write("sys/fs/cgroup/a/memory.high", std::to_string(400 * kMiB));
  EXPECT_THAT(Limit(), Optional(400 * kMiB));
}

// In a container, the mounted hierarchy begins at the container's group, but the path is relative
// to the host's root.
TEST_F(CgroupMemoryTest, UsesTheRootIfThePathIsNotInTheMount) {
  Write("proc/self/cgroup", "0::/docker/0123");
  Write("sys/fs/cgroup/memory.max", std::to_string(256 * kMiB));
  EXPECT_THAT(Limit(), Optional(256 * kMiB));
  Write("proc/self/cgroup", "0::/../../elsewhere");
  EXPECT_THAT(Limit(), Optional(256 * kMiB));
}

TEST_F(CgroupMemoryTest, SupportsVersionOneAndBothVersions) {
  Write("proc/self/cgroup", "12:pids:/a\n7:cpu,memory:/a/b\n0::/c");
  Write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712");
  Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", std::to_string(600 * kMiB));
  EXPECT_THAT(Limit(), Optional(600 * kMiB));
  Write("sys/fs/cgroup/unified/c/memory.max", std::to_string(500 * kMiB));
  EXPECT_THAT(Limit(), Optional(500 * kMiB));
}

TEST_F(CgroupMemoryTest, IgnoresMalformedLimits) {
  Write("proc/self/cgroup", "nonsense\n0::/a\n:::\n");
  Write("sys/fs/cgroup/a/memory.max", "-5");
  EXPECT_EQ(Limit(), std::nullopt);
}

TEST(SystemMemoryTest, IsWithinTheMachineAndTheGroup) {
  const auto machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  EXPECT_GT(host::SystemMemoryBytes(), 0u);
  EXPECT_LE(host::SystemMemoryBytes(), machine);
  EXPECT_LE(host::SystemMemoryBytes(), host::CgroupMemoryLimit().value_or(machine));
}

}  // namespace
}  // namespace crout::cgroup_memory_test
