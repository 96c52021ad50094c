// SPDX-License-Identifier: Apache-2.0

// Tests regions of shared memory: which files are accepted, their limits, and their ends.
#include <fcntl.h>
#include <sys/mman.h>

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "tests/server/rpc/shared_memory/shared_memory_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::shared_memory_test {
namespace {

using testing::FailsWith;
using testing::MemoryFile;
using ::testing::Optional;

TEST_F(SharedMemoryTest, RefusesFilesWhoseAccessCanFail) {
  Start();
  const auto refuse = [&](const MemoryFile& file, const char* reason) {
    EXPECT_THAT(Add(file), FailsWith(absl::StatusCode::kInvalidArgument, reason));
  };
  refuse(MemoryFile(kRegionBytes, 0), "can shrink or grow");
  refuse(MemoryFile(kRegionBytes, F_SEAL_SHRINK), "can shrink or grow");
  refuse(MemoryFile(kRegionBytes, F_SEAL_GROW), "can shrink or grow");
  refuse(MemoryFile(kRegionBytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE),
         "cannot map it");
  const MemoryFile good(kRegionBytes);
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{kRegionBytes} - 1, uint64_t{kRegionBytes} + 1, ~uint64_t{0}}) {
    EXPECT_THAT(Add(good.Duplicate(), size),
                FailsWith(absl::StatusCode::kInvalidArgument, "offer the whole file"));
  }
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  const OwnedFile writer(pipes[1]);
  EXPECT_THAT(Add(OwnedFile(pipes[0]), kRegionBytes),
              FailsWith(absl::StatusCode::kInvalidArgument, "has no seals"));
  OwnedFile regular(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(Add(std::move(regular), kRegionBytes),
              FailsWith(absl::StatusCode::kInvalidArgument, "has no seals"));
  EXPECT_EQ(Held().host_reserved, 0);
  EXPECT_EQ(core().shared_regions.totals().regions, 0);
}

TEST_F(SharedMemoryTest, RefusesHugePages) {
  Start();
  const size_t huge = size_t{2} << 20;
  OwnedFile file(memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (file.get() < 0) GTEST_SKIP() << "this system has no huge pages";
  ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(huge)), 0);
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_THAT(Add(std::move(file), huge),
              FailsWith(absl::StatusCode::kInvalidArgument, "has huge pages"));
}

TEST_F(SharedMemoryTest, ChargesARegionUntilItsLastUse) {
  Start();
  const MemoryFile file(kRegionBytes - 1);
  auto region = Add(file);
  ASSERT_OK(region);
  // The seal also holds for this descriptor.
  EXPECT_NE(ftruncate(file.get(), 0), 0);
  EXPECT_EQ(Held().host_reserved, kRegionBytes);
  EXPECT_EQ(device().live_registrations(), 1);
  const SharedRegions::Totals totals = core().shared_regions.totals();
  EXPECT_EQ(totals.regions, 1);
  EXPECT_EQ(totals.bytes, kRegionBytes);
  EXPECT_EQ(totals.registered_bytes, kRegionBytes);
  Region second = *region;
  const std::string id = second->id();
  *region = nullptr;
  EXPECT_OK(core().shared_regions.Find(id, ""));
  second = nullptr;
  WaitUntil([&] { return Held().host_reserved == 0; }, "returned");
  EXPECT_THAT(core().shared_regions.Find(id, ""), FailsWith(absl::StatusCode::kAborted, "hold"));
  WaitUntil([&] { return core().shared_regions.totals().regions == 0; }, "counted");
  EXPECT_EQ(device().live_registrations(), 0);
}

TEST_F(SharedMemoryTest, LimitsTheMemoryOfAUserAndOfAll) {
  Start();
  const MemoryFile quarter(4 * kRegionBytes);
  const MemoryFile page(4096);
  EXPECT_THAT(Add(MemoryFile(4 * kRegionBytes + 1)),
              FailsWith(absl::StatusCode::kResourceExhausted, "a quarter"));
  std::vector<Region> regions;
  for (const uid_t user : {kUser, kUser + 1, kUser + 2, kUser + 3}) {
    auto region = Add(quarter, user);
    ASSERT_OK(region);
    regions.push_back(*std::move(region));
  }
  EXPECT_THAT(Add(page), FailsWith(absl::StatusCode::kResourceExhausted, "a quarter"));
  EXPECT_THAT(Add(page, kUser + 4), FailsWith(absl::StatusCode::kResourceExhausted, "all users"));
  regions.pop_back();
  WaitUntil([&] { return core().shared_regions.totals().regions == 3; }, "released");
  EXPECT_OK(Add(page, kUser + 4));
}

TEST_F(SharedMemoryTest, FindsARegionForItsUserOnly) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const std::string& id = (*region)->id();
  EXPECT_EQ(id.size(), SharedRegions::kIdBytes);
  EXPECT_OK(core().shared_regions.Find(id, "1234"));
  const auto others = core().shared_regions.Find(id, "1235");
  EXPECT_THAT(others, FailsWith(absl::StatusCode::kAborted, "does not hold this region"));
  EXPECT_THAT(ReasonOf(others.status()), Optional(std::string("SHARED_MEMORY_GONE")));
  EXPECT_FALSE(core().shared_regions.Find("", "1234").ok());
}

TEST_F(SharedMemoryTest, IsOffByDefault) {
  StartServer();
  EXPECT_THAT(Add(MemoryFile(kRegionBytes)),
              FailsWith(absl::StatusCode::kFailedPrecondition, "--max-shared-memory"));
  v1::SharedRange range;
  range.set_region(std::string(16, 'x'));
  v1::Factor factor;
  const grpc::Status status = FactorizeRange(Dense(kN, kN), range, &factor);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
}

// The client's connection holds a region, and so does a call.
TEST_F(SharedMemoryTest, KeepsARegionWhileACallUsesIt) {
  Start();
  auto file = std::make_unique<MemoryFile>(kRegionBytes);
  auto region = Add(*file);
  ASSERT_OK(region);
  file->Write(Bytes(Matrix(kN)));
  device().copy_gate().Close();
  auto call = std::async(std::launch::async, [&, range = Range(*region, 0, kMatrixBytes)] {
    v1::Factor factor;
    const grpc::Status status = FactorizeRange(Dense(kN, kN), range, &factor);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return factor;
  });
  device().copy_gate().WaitUntilHeld();
  *region = nullptr;
  file.reset();
  EXPECT_EQ(core().shared_regions.totals().regions, 1);
  device().copy_gate().Open();
  ExpectSolves(call.get());
  WaitUntil([&] { return core().shared_regions.totals().regions == 0; }, "released");
}

}  // namespace
}  // namespace crout::shared_memory_test
