// SPDX-License-Identifier: Apache-2.0

#include "kernels/memory/caching_resource.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <thread>
#include <vector>

#include "kernels/host/device/host_memory.h"
#include "kernels/util/size_class.h"
#include "tests/support/memory/refused_allocations.h"
#include "tests/support/status_matchers.h"

namespace crout::caching_resource_test {
namespace {

using testing::FailsWith;

// Allocates blocks from the heap, counts them, and limits their total size.
class FakeSource final : public BlockSource {
 public:
  explicit FakeSource(size_t limit) : limit_(limit) {}

  absl::StatusOr<void*> Acquire(size_t bytes) override {
    if (bytes > limit_ - used_) return absl::ResourceExhaustedError("source is empty");
    ++acquired_;
    used_ += bytes;
    void* block = std::aligned_alloc(256, bytes);
    sizes_[block] = bytes;
    return block;
  }
  void Release(void* block, size_t bytes) override {
    EXPECT_EQ(sizes_[block], bytes);
    sizes_.erase(block);
    used_ -= bytes;
    std::free(block);
  }

  int acquired() const { return acquired_; }
  size_t used() const { return used_; }

 private:
  const size_t limit_;
  size_t used_ = 0;
  int acquired_ = 0;
  std::map<void*, size_t> sizes_;
};

struct Cache {
  Cache(size_t limit, size_t max_cached, size_t max_held = std::numeric_limits<size_t>::max()) {
    auto owned = std::make_unique<FakeSource>(limit);
    source = owned.get();
    resource = std::make_unique<CachingResource>(std::move(owned), max_cached, max_held);
  }
  FakeSource* source;
  std::unique_ptr<CachingResource> resource;
};

TEST(CachingResourceTest, ReusesFreedBlocks) {
  Cache cache(1 << 20, 1 << 20);
  std::byte* first;
  {
    ASSERT_OK_AND_ASSIGN(const Buffer buffer, cache.resource->Allocate(10000));
    first = buffer.data();
  }
  ASSERT_OK_AND_ASSIGN(const Buffer again, cache.resource->Allocate(9990));
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(cache.source->acquired(), 1);
  EXPECT_EQ(again.size(), 9990u);
  EXPECT_EQ(cache.resource->stats().bytes_in_use, BlockBytes(10000));
  EXPECT_EQ(cache.resource->stats().bytes_cached, 0u);
}

TEST(CachingResourceTest, RoundsUpByAtMostASixteenth) {
  for (size_t bytes = 1; bytes < (size_t{1} << 40); bytes += 1 + bytes / 7) {
    const size_t rounded = BlockBytes(bytes);
    EXPECT_GE(rounded, bytes);
    EXPECT_EQ(BlockBytes(rounded), rounded);
    EXPECT_EQ(rounded % 256, 0u);
    if (bytes > 4096) {
      EXPECT_LE(rounded - bytes, bytes / 16) << bytes;
    }
  }
}

TEST(CachingResourceTest, AllocatesNothingForZeroBytes) {
  Cache cache(1 << 20, 1 << 20);
  ASSERT_OK_AND_ASSIGN(const Buffer buffer, cache.resource->Allocate(0));
  EXPECT_FALSE(bool{buffer});
  EXPECT_EQ(cache.source->acquired(), 0);
}

TEST(CachingResourceTest, CachesNoMoreThanItsLimit) {
  Cache cache(1 << 20, 16384);
  {
    ASSERT_OK_AND_ASSIGN(const Buffer small, cache.resource->Allocate(8192));
    ASSERT_OK_AND_ASSIGN(const Buffer other, cache.resource->Allocate(16384));
    ASSERT_OK_AND_ASSIGN(const Buffer large, cache.resource->Allocate(32768));
  }
  // Buffers are freed in reverse order. The largest is never cached. The block of 16384 bytes is
  // cached until the block of 8192 bytes is freed.
  EXPECT_EQ(cache.resource->stats().bytes_cached, 8192u);
  EXPECT_EQ(cache.source->used(), 8192u);
  EXPECT_EQ(cache.resource->stats().bytes_in_use, 0u);
}

// The cache is configured as for a GPU: one limit applies to bytes in use and cached bytes
// together, and a block is almost as large as the limit.
TEST(CachingResourceTest, CachesBlocksThatFitBesideBytesInUse) {
  constexpr size_t kBound = 1 << 20;
  Cache cache(8 * kBound, kBound, kBound);
  const size_t most = kBound / 16 * 15;
  for (int job = 0; job < 3; ++job) ASSERT_OK(cache.resource->Allocate(most));
  EXPECT_EQ(cache.source->acquired(), 1);
  EXPECT_EQ(cache.resource->stats().bytes_cached, most);
  // A block of another size replaces the cached one.
  ASSERT_OK_AND_ASSIGN(Buffer half, cache.resource->Allocate(kBound / 2));
  EXPECT_EQ(cache.resource->stats().bytes_cached, 0u);
  EXPECT_EQ(cache.source->used(), kBound / 2);
  // Blocks are cached only if they fit together with the bytes in use.
  { ASSERT_OK_AND_ASSIGN(const Buffer large, cache.resource->Allocate(most)); }
  EXPECT_EQ(cache.resource->stats().bytes_cached, 0u);
  { ASSERT_OK_AND_ASSIGN(const Buffer small, cache.resource->Allocate(kBound / 4)); }
  EXPECT_EQ(cache.resource->stats().bytes_cached, kBound / 4);
  half.reset();
  EXPECT_EQ(cache.source->used(), kBound / 4 * 3);
  // The limit is for caching. A larger allocation still succeeds.
  ASSERT_OK_AND_ASSIGN(const Buffer beyond, cache.resource->Allocate(2 * kBound));
  EXPECT_EQ(cache.source->used(), 2 * kBound);
}

TEST(CachingResourceTest, FreesCachedBlocksBeforeItFails) {
  Cache cache(65536, 65536);
  { ASSERT_OK_AND_ASSIGN(const Buffer buffer, cache.resource->Allocate(32768)); }
  ASSERT_OK_AND_ASSIGN(const Buffer whole, cache.resource->Allocate(65536));
  EXPECT_EQ(cache.resource->stats().bytes_cached, 0u);
  EXPECT_THAT(cache.resource->Allocate(1),
              FailsWith(absl::StatusCode::kResourceExhausted, "source is empty"));
  EXPECT_THAT(cache.resource->Allocate(SIZE_MAX),
              FailsWith(absl::StatusCode::kResourceExhausted, ""));
}

TEST(CachingResourceTest, TrimReturnsEverything) {
  Cache cache(1 << 20, 1 << 20);
  { ASSERT_OK_AND_ASSIGN(const Buffer buffer, cache.resource->Allocate(32768)); }
  EXPECT_GT(cache.source->used(), 0u);
  cache.resource->TrimTo(0);
  EXPECT_EQ(cache.source->used(), 0u);
}

TEST(CachingResourceTest, SupportsManyThreads) {
  CachingResource resource(std::make_unique<host::HostMemory>(), size_t{4} << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&resource, t] {
      for (size_t i = 1; i < 300; ++i) {
        auto buffer = resource.Allocate(i * 7919 % 300000 + 1);
        ASSERT_OK(buffer);
        std::memset(buffer->data(), t, buffer->size());
        EXPECT_EQ(std::to_integer<int>(buffer->data()[buffer->size() - 1]), t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(resource.stats().bytes_in_use, 0u);
  EXPECT_LE(resource.stats().bytes_cached, size_t{4} << 20);
}

TEST(HostMemoryTest, LargeBlocksAreAlignedAndZero) {
  host::HostMemory memory;
  for (const size_t bytes : {size_t{1} << 20, (size_t{1} << 20) + 4096, size_t{9} << 20}) {
    ASSERT_OK_AND_ASSIGN(void* block, memory.Acquire(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % (2 << 20), 0u);
    EXPECT_EQ(static_cast<char*>(block)[bytes - 1], 0);
    memory.Release(block, bytes);
  }
}

TEST(HostMemoryTest, KeepsPagesOfCachedBlocks) {
  CachingResource resource(std::make_unique<host::HostMemory>(), size_t{64} << 20);
  const size_t bytes = size_t{16} << 20;
  {
    ASSERT_OK_AND_ASSIGN(const Buffer buffer, resource.Allocate(bytes));
    std::memset(buffer.data(), 1, bytes);
  }
  ASSERT_OK_AND_ASSIGN(const Buffer again, resource.Allocate(bytes));
  // If its pages had been released, the block would contain zeros.
  for (size_t k = 0; k < bytes; k += 4096) ASSERT_EQ(std::to_integer<int>(again.data()[k]), 1);
}

// Destructors free buffers, so freeing must not allocate.
TEST(CachingResourceTest, FreesWithoutAllocating) {
  constexpr size_t kMaxCached = 20000;
  Cache cache(1 << 20, kMaxCached);
  std::vector<Buffer> buffers;
  for (const size_t bytes : {9000, 9000, 4000, 2000, 12000, 30000}) {
    ASSERT_OK_AND_ASSIGN(Buffer buffer, cache.resource->Allocate(bytes));
    buffers.push_back(std::move(buffer));
  }
  for (Buffer& buffer : buffers) {
    testing::RefuseAfter(0, testing::Threads::kThis);
    EXPECT_NO_THROW(buffer.reset());
    testing::StopRefusing();
  }
  EXPECT_EQ(cache.resource->stats().bytes_in_use, 0u);
  EXPECT_LE(cache.resource->stats().bytes_cached, kMaxCached);
  EXPECT_EQ(cache.source->used(), cache.resource->stats().bytes_cached);
}

}  // namespace
}  // namespace crout::caching_resource_test
