// SPDX-License-Identifier: Apache-2.0

#include "server/groups/rank_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace crout::testing::rank_folder_test {
namespace {

namespace fs = std::filesystem;

// Makes a folder with a file that no process has locked, as a killed daemon leaves behind.
std::string MakeFolder() {
  const absl::StatusOr<RankFolder> folder = RankFolder::Create();
  if (!folder.ok()) std::abort();
  const fs::path root = fs::path(folder->path()).parent_path();
  std::string path = root / "crout-group-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) std::abort();
  std::ofstream(path + "/log") << "output";
  return path;
}

TEST(RankFolderTest, RemovesFoldersOfDaemonsThatNoLongerRun) {
  const std::string old = MakeFolder();
  ASSERT_OK_AND_ASSIGN(const RankFolder folder, RankFolder::Create());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(folder.path()));
}

TEST(RankFolderTest, LeavesFoldersOfOtherDaemons) {
  ASSERT_OK_AND_ASSIGN(const RankFolder used, RankFolder::Create());
  std::ofstream(used.log()) << "output";
  ASSERT_OK(RankFolder::Create());
  EXPECT_TRUE(fs::exists(used.log()));
}

TEST(RankFolderTest, DoesNotFollowLinks) {
  const fs::path target = fs::path(::testing::TempDir()) / "crout_rank_folder_test";
  fs::create_directory(target);
  const std::string link = MakeFolder();
  fs::remove_all(link);
  fs::create_directory_symlink(target, link);
  ASSERT_OK(RankFolder::Create());
  EXPECT_TRUE(fs::exists(target));
  fs::remove(link);
  fs::remove(target);
}

TEST(RankFolderTest, RemovesItsFolder) {
  std::string path;
  {
    ASSERT_OK_AND_ASSIGN(RankFolder folder, RankFolder::Create());
    path = folder.path();
    const RankFolder moved = std::move(folder);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(RankFolderTest, DaemonsThatStartTogetherGetTheirFolders) {
  constexpr int kDaemons = 4;
  constexpr int kStarts = 50;
  std::vector<std::thread> daemons;
  for (int i = 0; i < kDaemons; ++i) {
    daemons.emplace_back([] {
      for (int start = 0; start < kStarts; ++start) {
        const absl::StatusOr<RankFolder> folder = RankFolder::Create();
        ASSERT_OK(folder);
        EXPECT_TRUE(fs::exists(folder->path()));
      }
    });
  }
  for (std::thread& daemon : daemons) daemon.join();
}

}  // namespace
}  // namespace crout::testing::rank_folder_test
