// SPDX-License-Identifier: Apache-2.0

// Tests uploads through pinned staging blocks.
#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "tests/gpu/harness/gpu_testing.h"

namespace crout::upload_test {
namespace {

class UploadTest : public GpuTest {};

// Requests space when there is none. The future is ready when there is space. The callback owns the
// promise, because the callback may return after the wait for the future.
std::future<void> RequestSpace(Uploader& uploader) {
  const auto ready = std::make_shared<std::promise<void>>();
  EXPECT_TRUE(uploader.Reserve([ready] { ready->set_value(); }).empty());
  return ready->get_future();
}

// Sends `bytes` in pieces of at most `piece` bytes. Waits while the uploader has no space.
absl::Status Send(Uploader& uploader, std::span<const std::byte> bytes, size_t piece) {
  while (!bytes.empty()) {
    auto ready = std::make_shared<std::promise<void>>();
    const std::span<std::byte> room = uploader.Reserve([ready] { ready->set_value(); });
    if (room.empty()) {
      ready->get_future().wait();
      continue;
    }
    const size_t count = std::min({room.size(), piece, bytes.size()});
    std::memcpy(room.data(), bytes.data(), count);
    if (absl::Status status = uploader.Commit(count); !status.ok()) return status;
    bytes = bytes.subspan(count);
  }
  return absl::OkStatus();
}

std::vector<std::byte> Noise(size_t bytes, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<std::byte> noise(bytes);
  for (std::byte& b : noise) b = static_cast<std::byte>(generator());
  return noise;
}

// Sends `bytes` with a new uploader of `device` and returns the contents of the destination.
std::vector<std::byte> Roundtrip(Device& device, const std::vector<std::byte>& bytes,
                                 size_t piece) {
  Bench bench(device);
  const Buffer destination = bench.Allocate(bytes.size());
  auto uploader = device.StartUpload({destination.data(), destination.size()});
  EXPECT_TRUE(uploader.ok()) << uploader.status();
  EXPECT_TRUE(Send(**uploader, bytes, piece).ok());
  EXPECT_TRUE((*uploader)->Join(bench.context()).ok());
  return bench.Get<std::byte>(destination);
}

TEST_F(UploadTest, UploadsAllBytes) {
  const size_t block = cuda::Options().upload_block_bytes;
  for (const size_t size :
       {size_t{1}, size_t{4096}, block - 1, block, block + 1, 9 * block + 12345}) {
    for (const size_t piece : {size_t{65'521}, size_t{1} << 20, 3 * block}) {
      const auto bytes = Noise(size, size + piece);
      EXPECT_EQ(Roundtrip(Gpu(), bytes, piece), bytes) << size << " in pieces of " << piece;
    }
  }
}

TEST_F(UploadTest, SharesFewBlocksAmongManyUploads) {
  cuda::Options options;
  options.upload_block_bytes = 64 << 10;
  options.upload_blocks = 3;
  options.blocks_per_upload = 2;
  auto device = cuda::MakeDevice(0, options);
  ASSERT_TRUE(device.ok()) << device.status();
  std::vector<std::thread> threads;
  std::atomic<int> whole{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const auto bytes = Noise((5 << 20) + t, t);
      whole += Roundtrip(**device, bytes, 40'000) == bytes;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(whole, 8);
}

TEST_F(UploadTest, ReservesNoMoreThanTheRemainingBytes) {
  Bench bench(Gpu());
  const Buffer destination = bench.Allocate(1000);
  auto uploader = Gpu().StartUpload({destination.data(), 1000});
  ASSERT_TRUE(uploader.ok());
  EXPECT_EQ((*uploader)->Reserve([] {}).size(), 1000);
  EXPECT_TRUE((*uploader)->Commit(400).ok());
  EXPECT_EQ((*uploader)->Reserve([] {}).size(), 600);
  EXPECT_EQ((*uploader)->Join(bench.context()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE((*uploader)->Commit(601).ok());
  EXPECT_TRUE((*uploader)->Commit(600).ok());
  EXPECT_TRUE((*uploader)->Reserve([] { ADD_FAILURE() << "nothing is left"; }).empty());
  EXPECT_TRUE((*uploader)->Join(bench.context()).ok());
}

// Another stream, which is not joined to the upload, reads the last bytes after Join.
TEST_F(UploadTest, JoinWaitsForTheLastCopies) {
  Bench bench(Gpu());
  Bench other(Gpu());
  const size_t block = cuda::Options().upload_block_bytes;
  const auto bytes = Noise(3 * block, 5);
  std::vector<std::byte> end(4096);
  for (int round = 0; round < 20; ++round) {
    const Buffer destination = bench.Put(std::vector<std::byte>(bytes.size()));
    auto uploader = Gpu().StartUpload({destination.data(), destination.size()});
    ASSERT_TRUE(uploader.ok()) << uploader.status();
    ASSERT_TRUE(Send(**uploader, bytes, block).ok());
    ASSERT_TRUE((*uploader)->Join(bench.context()).ok());
    ASSERT_TRUE(
        other.ops()
            .CopyToHost(destination.data() + bytes.size() - end.size(), end.data(), end.size())
            .ok());
    other.Wait();
    EXPECT_TRUE(std::equal(end.rbegin(), end.rend(), bytes.rbegin())) << "round " << round;
  }
}

TEST_F(UploadTest, AbandonedUploadsReturnTheirBlocks) {
  cuda::Options options;
  options.upload_block_bytes = 64 << 10;
  options.upload_blocks = 2;
  auto device = cuda::MakeDevice(0, options);
  ASSERT_TRUE(device.ok()) << device.status();
  Bench bench(**device);
  const Buffer destination = bench.Allocate(1 << 20);
  const std::span<std::byte> to(destination.data(), destination.size());
  for (int round = 0; round < 50; ++round) {
    auto first = (*device)->StartUpload(to);
    auto second = (*device)->StartUpload(to);
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_FALSE((*first)->Reserve([] {}).empty());
    ASSERT_FALSE((*second)->Reserve([] {}).empty());
    auto third = (*device)->StartUpload(to);
    ASSERT_TRUE(third.ok());
    const std::future<void> ready = RequestSpace(**third);
    if (round % 2 == 0) {
      third->reset();  // its callback may never run
      continue;
    }
    first->reset();
    ready.wait();
    EXPECT_FALSE((*third)->Reserve([] {}).empty());
  }
}

TEST_F(UploadTest, ReservingAgainWhileWaitingLosesNoBlock) {
  cuda::Options options;
  options.upload_block_bytes = 64 << 10;
  options.upload_blocks = 4;
  auto device = cuda::MakeDevice(0, options);
  ASSERT_TRUE(device.ok()) << device.status();
  Bench bench(**device);
  const Buffer destination = bench.Allocate(1 << 20);
  const std::span<std::byte> to(destination.data(), destination.size());
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Uploader>> holding;
    for (int i = 0; i < options.upload_blocks; ++i) {
      auto upload = (*device)->StartUpload(to);
      ASSERT_TRUE(upload.ok());
      holding.push_back(*std::move(upload));
      ASSERT_FALSE(holding.back()->Reserve([] {}).empty()) << "round " << round;
    }
    auto waiting = (*device)->StartUpload(to);
    ASSERT_TRUE(waiting.ok());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE((*waiting)->Reserve([] {}).empty());
    const std::future<void> ready = RequestSpace(**waiting);
    holding.clear();
    ready.wait();
    EXPECT_FALSE((*waiting)->Reserve([] {}).empty());
  }
}

TEST_F(UploadTest, AllowsDestroyingAnUploaderInItsCallback) {
  cuda::Options options;
  options.upload_block_bytes = 64 << 10;
  options.upload_blocks = 1;
  auto device = cuda::MakeDevice(0, options);
  ASSERT_TRUE(device.ok()) << device.status();
  Bench bench(**device);
  const Buffer destination = bench.Allocate(1 << 20);
  const std::span<std::byte> to(destination.data(), destination.size());
  auto first = (*device)->StartUpload(to);
  auto second = (*device)->StartUpload(to);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_FALSE((*first)->Reserve([] {}).empty());
  std::promise<void> gone;
  ASSERT_TRUE((*second)
                  ->Reserve([&] {
                    second->reset();
                    gone.set_value();
                  })
                  .empty());
  first->reset();
  gone.get_future().wait();
  const auto bytes = Noise(1 << 20, 3);
  EXPECT_EQ(Roundtrip(**device, bytes, 4096), bytes);
}

}  // namespace
}  // namespace crout::upload_test
